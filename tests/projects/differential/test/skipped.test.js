import assert from 'node:assert/strict';
import { counted } from '../src/skipped.js';

describe('counted', () => {
  it('counts all where none is to be skipped', () => {
    assert.equal(counted('a b'), 2);
  });

  it('leaves one out', () => {
    assert.equal(counted('a b', 'b'), 1);
  });
});
