import assert from 'node:assert/strict';
import prefixed from '../src/unnamed.js';

describe('unnamed', () => {
  it('is a text', () => {
    assert.equal(typeof prefixed('a'), 'string');
  });
});
