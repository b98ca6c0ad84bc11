import assert from 'node:assert/strict';
import { rank } from '../src/inplace.js';

describe('rank', () => {
  it('takes an empty list', () => {
    const none = [];
    rank(none, 1);
    assert.deepEqual(none, []);
  });
  it('takes players', () => {
    rank([{ name: 'Ada', points: 3, streak: 1 }], 5);
  });
});
