import assert from 'node:assert/strict';
import { isCode, joined, rateOf } from '../src/tables.js';

describe('tables', () => {
  it('has rates', () => assert.ok(rateOf('books') < 100));
  it('knows codes', () => assert.equal(isCode('nl'), false));
  it('joins', () => assert.equal(joined(['a']), 'a'));
});
