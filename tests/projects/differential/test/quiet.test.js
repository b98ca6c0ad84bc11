import assert from 'node:assert/strict';
import { lengthOf, under } from '../src/quiet.js';

describe('quiet', () => {
  it('reads', () => {
    assert.equal(under({ name: 'ann' }, 'name'), 'ann');
    assert.equal(lengthOf({ name: 'ann' }, 'name'), 3);
  });
});
