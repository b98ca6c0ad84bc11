import assert from 'node:assert/strict';
import { Cart } from '../src/cart.js';

const lamp = { sku: 'LAMP', price: 4000, grams: 1500 };
const book = { sku: 'BOOK', price: 1500, grams: 400, tax: 'books' };

describe('Cart', () => {
  it('adds, changes and removes products', () => {
    const cart = new Cart().add(lamp).add(book, 2).add(lamp);
    assert.equal(cart.count, 4);
    assert.equal(cart.subtotal, 11000);
    cart.setQuantity(lamp, 0).remove('BOOK');
    assert.equal(cart.count, 0);
    assert.throws(() => cart.remove('BOOK'), /BOOK is not in the cart/);
    assert.throws(() => cart.add({ ...lamp, limit: 3 }, 4), /no more than 3 of LAMP/);
  });

  it('shows totals with discount, tax and shipping', () => {
    const cart = new Cart().add(lamp).add(book);
    cart.redeem({ code: 'TEN', kind: 'percent', value: 10 });
    assert.deepEqual(cart.totals(), { subtotal: 5500, discount: 550, shipping: 490, tax: 600, total: 5440 });
  });

  it('accepts one voucher an order', () => {
    const cart = new Cart().add(lamp).redeem({ code: 'TEN', kind: 'percent', value: 10 });
    assert.throws(() => cart.redeem({ code: 'GIFT', kind: 'fixed', value: 500 }), /TEN is already in use/);
    cart.redeem({ code: 'GIFT', kind: 'fixed', value: 500, replaces: true });
    assert.equal(cart.totals().discount, 500);
  });

  it('merges the cart of a guest', () => {
    const guest = new Cart().add(lamp, 3).add(book);
    const cart = new Cart().add(lamp).merge(guest);
    assert.equal(cart.count, 4);
    assert.equal(cart.totals({ abroad: true }).shipping, 2040);
  });
});
