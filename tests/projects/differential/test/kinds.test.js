import assert from 'node:assert/strict';
import { bytes, ending, kind, later, odd, split, tally } from '../src/kinds.js';

describe('kinds', () => {
  it('are made', () => {
    assert.ok(tally(['a', 'bc']));
    assert.ok(odd(new Set([1, 2, 3])));
    assert.ok(later(new Date(0)));
    assert.ok(bytes('ab'));
    assert.ok(ending('js'));
    assert.ok(kind(true));
    assert.ok(split('a,b,c'));
  });
});
