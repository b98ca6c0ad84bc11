import assert from 'node:assert/strict';
import { grouped } from '../src/grouped.js';

describe('grouped', () => {
  it('counts', () => {
    assert.deepEqual(grouped({ lamp: 3, chair: 9 }), { other: 12 });
  });
});
