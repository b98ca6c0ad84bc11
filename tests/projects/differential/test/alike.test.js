import assert from 'node:assert/strict';
import { alike } from '../src/alike.js';

describe('alike', () => {
  it('compares', () => {
    assert.equal(alike([1, 2], [1, 3]), false);
    assert.equal(alike(['a'], []), false);
  });
});
