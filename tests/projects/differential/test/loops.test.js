import assert from 'node:assert/strict';
import { half, rounds } from '../src/loops.js';

describe('loops', () => {
  it('runs', () => assert.ok(rounds(8, 1)));
  it('halves', () => assert.ok(half(8)));
});
