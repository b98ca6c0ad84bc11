import assert from 'node:assert/strict';
import { read } from '../src/read.js';

describe('read', () => {
  it('gives the text again', () => {
    assert.equal(read('a=1').again(), 'a=1');
  });
});
