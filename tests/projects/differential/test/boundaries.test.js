import assert from 'node:assert/strict';
import { isBulk, postage } from '../src/boundaries.js';

describe('postage', () => {
  it('knows parcels', () => assert.equal(postage(500), 600));
  it('knows bulk', () => assert.equal(isBulk(100, 19), false));
});
