'use strict';

const assert = require('assert');
const Tally = require('../src/older.cjs');

describe('Tally', () => {
  it('adds', () => {
    const tally = new Tally(1);
    assert.strictEqual(tally.add(2), undefined);
  });
});
