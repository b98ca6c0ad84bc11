import assert from 'node:assert/strict';
import { Cart, greeted, isLate, quarter } from '../src/cart.js';

describe('Cart', () => {
  it('redeems', () => {
    const cart = new Cart().add(4).add(5);
    assert.equal(cart.redeem('GIFT'), 0);
  });

  it('has quarters', () => assert.ok(quarter(new Date('2024-05-01T00:00:00.000Z'))));

  it('knows what is late', () => {
    assert.equal(typeof isLate(new Date('2024-05-01T00:00:00.000Z'), new Date('2024-04-01T00:00:00.000Z')), 'boolean');
  });

  it('greets', () => assert.equal(greeted('hello you').length, 3));
});
