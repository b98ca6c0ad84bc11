const assert = require('assert');
const { between } = require('../src/wrapped.cjs');

describe('between', () => {
  it('is a boolean', () => {
    assert.strictEqual(typeof between(5, 1, 9), 'boolean');
  });
});
