import assert from 'node:assert/strict';
import { depthOf } from '../src/codes.js';

describe('codes', () => {
  it('counts spaces', () => {
    assert.equal(depthOf('  word'), 2);
    assert.equal(depthOf('word'), 0);
  });
});
