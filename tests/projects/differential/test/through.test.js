import assert from 'node:assert/strict';
import { title } from '../src/through.js';

describe('title', () => {
  it('is a text', () => {
    assert.equal(typeof title('a', { size: 2 }), 'string');
  });
});
