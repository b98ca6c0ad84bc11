import assert from 'node:assert/strict';
import { excerpt } from '../src/options.js';

describe('excerpt', () => {
  it('shows it all', () => assert.equal(excerpt('to be'), 'to be'));
});
