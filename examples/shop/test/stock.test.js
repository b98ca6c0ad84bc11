import assert from 'node:assert/strict';
import { OutOfStock, Stock } from '../src/stock.js';

describe('Stock', () => {
  it('holds pieces for three workdays', () => {
    const stock = new Stock();
    stock.receive('LAMP', 5);
    const id = stock.hold('LAMP', 2, '2024-05-16');
    assert.equal(stock.available('LAMP', '2024-05-17'), 3);
    assert.equal(stock.available('LAMP', '2024-05-22'), 5);
    stock.release(id);
    assert.equal(stock.available('LAMP', '2024-05-17'), 5);
  });

  it('refuses to hold more than there is', () => {
    const stock = new Stock();
    stock.receive('LAMP', 1);
    assert.throws(() => stock.hold('LAMP', 3, '2024-05-16'), OutOfStock);
    assert.throws(() => stock.hold('LAMP', 0, '2024-05-16'), RangeError);
  });

  it('ships what was held', () => {
    const stock = new Stock();
    stock.receive('LAMP', 5);
    const id = stock.hold('LAMP', 2, '2024-05-16');
    assert.equal(stock.ship(id, '2024-05-17'), 3);
    assert.throws(() => stock.ship(id, '2024-05-17'), /no hold H1/);
  });

  it('knows when deliveries arrive', () => {
    const stock = new Stock();
    stock.receive('LAMP', 1);
    stock.expectDelivery('LAMP', 10, '2024-05-20');
    assert.equal(stock.daysUntil('LAMP', 1, '2024-05-16'), 0);
    assert.equal(stock.daysUntil('LAMP', 8, '2024-05-16'), 4);
    assert.equal(stock.daysUntil('LAMP', 50, '2024-05-16'), null);
    stock.unload('2024-05-20');
    assert.equal(stock.available('LAMP', '2024-05-20'), 11);
  });
});
