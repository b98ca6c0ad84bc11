import assert from 'node:assert/strict';
import { compact, isCode } from '../src/patterns.js';

describe('patterns', () => {
  it('are looked for', () => {
    assert.equal(typeof isCode('AB12'), 'boolean');
    assert.equal(typeof compact('a - b'), 'string');
  });
});
