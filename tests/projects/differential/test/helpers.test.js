import assert from 'node:assert/strict';
import { invoice } from '../src/helpers.js';

const LAMP = { sku: 'LAMP', price: 4000 };
const line = (over = {}) => ({ ...LAMP, quantity: 1, ...over });
function customer(country, vatId) {
  const name = 'Ada';
  return { name, country, vatId };
}

describe('invoice', () => {
  it('adds up', () => assert.equal(invoice([line(), line({ quantity: 2 })], customer('NL')).net, 12000));
  it('charges no VAT abroad', () => assert.equal(invoice([line()], customer('DE', 'DE1')).vat, 0));
});
