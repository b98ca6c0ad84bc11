import assert from 'node:assert/strict';
import { allocate, bulkPercent, lineTotal, shippingCost, taxIncluded, voucherDiscount } from '../src/pricing.js';

describe('pricing', () => {
  it('gives a bulk discount that grows with the quantity', () => {
    assert.equal(bulkPercent(1), 0);
    assert.equal(bulkPercent(12), 5);
    assert.equal(bulkPercent(80), 12);
    assert.equal(lineTotal({ price: 1000, quantity: 20 }), 19000);
    assert.equal(lineTotal({ price: 1000, quantity: 20, clearance: true }), 20000);
  });

  it('refuses prices and quantities that make no sense', () => {
    assert.throws(() => lineTotal({ price: -1, quantity: 1 }), RangeError);
    assert.throws(() => lineTotal({ price: 100, quantity: 1.5 }), RangeError);
  });

  it('computes voucher discounts', () => {
    assert.equal(voucherDiscount(8000, { code: 'SPRING', kind: 'percent', value: 10 }), 800);
    assert.equal(voucherDiscount(8000, { code: 'SPRING', kind: 'percent', value: 50, cap: 2500 }), 2500);
    assert.equal(voucherDiscount(8000, { code: 'GIFT', kind: 'fixed', value: 1500 }), 1500);
    assert.throws(() => voucherDiscount(1000, { code: 'GIFT', kind: 'fixed', value: 500, minimum: 2000 }));
  });

  it('allocates a discount without losing a cent', () => {
    assert.deepEqual(allocate(100, [1, 1, 1]), [34, 33, 33]);
    assert.deepEqual(allocate(101, [1000, 3000]), [25, 76]);
  });

  it('adds tax and shipping', () => {
    assert.equal(taxIncluded(1200), 200);
    assert.equal(taxIncluded(1500, 'books'), 0);
    assert.equal(shippingCost({ grams: 500, subtotal: 2000 }), 490);
    assert.equal(shippingCost({ grams: 500, subtotal: 9000 }), 0);
    assert.equal(shippingCost({ grams: 3500, subtotal: 9000, abroad: true }), 1790);
    assert.equal(shippingCost({ grams: 500, subtotal: 2000, express: true }), 1080);
  });
});
