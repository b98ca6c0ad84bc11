import assert from 'node:assert/strict';
import { gap, Ruler } from '../src/typed.js';

describe('gap', () => {
  it('is a number', () => {
    const three: number = 3;
    assert.equal(typeof gap(three), 'number');
    assert.equal(typeof new Ruler('cm').mark(three), 'string');
  });
});
