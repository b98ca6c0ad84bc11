import assert from 'node:assert/strict';
import { formatAmount, parseAmount, percentOf } from '../src/util/money.js';

describe('money', () => {
  it('reads and writes amounts', () => {
    assert.equal(parseAmount('1,234.5'), 123450);
    assert.equal(parseAmount(' 19.99 '), 1999);
    assert.equal(parseAmount('free'), null);
    assert.equal(parseAmount('1.999'), null);
    assert.equal(formatAmount(123450), '1,234.50 EUR');
    assert.equal(formatAmount(5, 'USD'), '0.05 USD');
    assert.equal(formatAmount(-250), '-2.50 EUR');
  });

  it('rounds half a cent away from zero', () => {
    assert.equal(percentOf(250, 5), 13);
    assert.equal(percentOf(-250, 5), -13);
  });
});
