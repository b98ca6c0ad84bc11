import assert from 'node:assert/strict';
import { area } from '../src/memo.js';

describe('area', () => {
  it('is a number', () => assert.ok(area({ kind: 'square', size: 1 })));
});
