import assert from 'node:assert/strict';
import { isFree, total } from '../src/cart.js';

describe('cart', () => {
  it('adds up', () => {
    assert.equal(total([{ price: 2, count: 3 }]), 6);
  });

  it('is not free', () => {
    assert.equal(isFree([{ price: 2, count: 1 }]), false);
  });
});
