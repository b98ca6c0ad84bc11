const assert = require('assert');
const total = require('../src/required.cjs');

describe('total', () => {
  it('is a number', () => {
    assert.strictEqual(typeof total([1, 2]), 'number');
    assert.strictEqual(typeof total.half(4), 'number');
  });
});
