import assert from 'node:assert/strict';
import { speaks } from '../src/tags.js';

describe('speaks', () => {
  it('knows a tag', () => {
    assert.equal(speaks(['de', 'en-US'], 'en-US'), true);
    assert.equal(speaks(['de'], 'fr'), false);
  });
});
