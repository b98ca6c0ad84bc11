import assert from 'node:assert/strict';
import { pages, twice } from '../src/hoards.js';

describe('hoards', () => {
  it('runs', () => assert.ok(pages(8, 1)));
  it('doubles', () => assert.ok(twice(8)));
});
