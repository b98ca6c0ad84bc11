import assert from 'node:assert/strict';
import { stairAfter } from '../src/stairs.js';

describe('stairs', () => {
  it('counts landings', () => {
    assert.equal(stairAfter(7), 8);
    assert.equal(stairAfter(0), 0);
  });
});
