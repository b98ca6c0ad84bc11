import assert from 'node:assert/strict';
import Span from '../src/members.js';

describe('Span', () => {
  it('is made', () => {
    assert.ok(new Span(3));
    assert.ok(Span.of(2));
  });
});
