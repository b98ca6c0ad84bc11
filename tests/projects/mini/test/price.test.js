import assert from 'node:assert/strict';
import { discounted, gross } from '../src/price.js';

describe('price', () => {
  it('adds tax', () => {
    assert.equal(gross(10), 12);
  });

  it('refuses a negative net', () => {
    assert.throws(() => gross(-1), RangeError);
  });

  it('gives a discount', () => {
    assert.equal(discounted(200), 180);
    assert.equal(discounted(50), 50);
  });
});
