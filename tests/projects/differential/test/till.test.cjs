'use strict';

const assert = require('assert');
const till = require('../src/till.cjs');

describe('till', () => {
  it('adds', () => {
    assert.strictEqual(till.add(2), undefined);
  });
});
