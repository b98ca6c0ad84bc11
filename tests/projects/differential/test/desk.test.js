import assert from 'node:assert/strict';
import { Desk } from '../src/desk.js';

describe('Desk', () => {
  it('counts who waits', () => {
    const desk = new Desk();
    desk.take('Ann');
    assert.equal(desk.length, 1);
  });
  it('calls by ticket', () => {
    const desk = new Desk();
    const ticket = desk.take('Bob');
    assert.equal(desk.call(ticket), 'Bob');
  });
});
