import assert from 'node:assert/strict';
import { Square } from '../src/inherited.js';

describe('Square', () => {
  it('has an area', () => assert.ok(new Square(2).area()));
});
