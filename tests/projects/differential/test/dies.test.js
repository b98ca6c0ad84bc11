import assert from 'node:assert/strict';
import { add } from '../src/dies.js';

describe('dies', () => {
  it('adds', () => assert.ok(add(1, 2)));
});
