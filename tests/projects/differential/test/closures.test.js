import assert from 'node:assert/strict';
import { atLeast, counter } from '../src/closures.js';

describe('closures', () => {
  it('are made', () => {
    assert.equal(typeof counter(5).next(2), 'number');
    assert.equal(typeof atLeast(3), 'function');
  });
});
