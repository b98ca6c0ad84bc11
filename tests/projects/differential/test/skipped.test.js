import assert from 'node:assert/strict';
import { kept } from '../src/skipped.js';

describe('kept', () => {
  it('leaves all where none is to be skipped', () => {
    assert.deepEqual(kept(['a', 'b']), ['a', 'b']);
  });

  it('leaves one out', () => {
    assert.deepEqual(kept(['a', 'b'], 'b'), ['a']);
  });
});
