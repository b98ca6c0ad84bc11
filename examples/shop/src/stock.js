import { addWorkdays, contains, dateRange, daysBetween } from './dates.js';

const HOLD_WORKDAYS = 3;

export class OutOfStock extends Error {
  constructor(sku, wanted, available) {
    super(`${wanted} of ${sku} wanted, ${available} available`);
    this.name = 'OutOfStock';
    this.missing = wanted - available;
  }
}

/** Pieces on the shelf, pieces on their way, and pieces held for customers who have not paid yet. */
export class Stock {
  #shelf = new Map();
  #deliveries = [];
  #holds = new Map();
  #lastHold = 0;
  #holidays;

  constructor({ holidays = [] } = {}) {
    this.#holidays = holidays;
  }

  receive(sku, quantity) {
    checkQuantity(quantity);
    this.#shelf.set(sku, this.#onShelf(sku) + quantity);
  }

  expectDelivery(sku, quantity, date) {
    checkQuantity(quantity);
    this.#deliveries.push({ sku, quantity, period: dateRange(date) });
  }

  /** Puts everything that was due by `date` on the shelf. */
  unload(date) {
    const due = this.#deliveries.filter(({ period }) => contains(period, date));
    for (const { sku, quantity } of due) this.receive(sku, quantity);
    this.#deliveries = this.#deliveries.filter((delivery) => !due.includes(delivery));
  }

  /** Pieces that can be sold on `date`: expected deliveries count, holds that have run out do not. */
  available(sku, date) {
    const arriving = this.#deliveries.filter((delivery) => delivery.sku === sku && contains(delivery.period, date));
    const held = [...this.#holds.values()].filter((hold) => hold.sku === sku && contains(hold.period, date));
    return this.#onShelf(sku) + pieces(arriving) - pieces(held);
  }

  /** Holds pieces for three workdays. Returns the id to ship or release them by. */
  hold(sku, quantity, date) {
    checkQuantity(quantity);
    const available = this.available(sku, date);
    if (available < quantity) throw new OutOfStock(sku, quantity, available);
    const period = dateRange(date, addWorkdays(date, HOLD_WORKDAYS, this.#holidays));
    const id = `H${++this.#lastHold}`;
    this.#holds.set(id, { sku, quantity, period });
    return id;
  }

  release(id) {
    return this.#holds.delete(id);
  }

  /** Takes held pieces off the shelf and returns how many are left there. */
  ship(id, date) {
    const hold = this.#holds.get(id);
    if (!hold) throw new Error(`no hold ${id}`);
    if (!contains(hold.period, date)) throw new RangeError(`hold ${id} ran out on ${hold.period.to}`);
    const left = this.#onShelf(hold.sku) - hold.quantity;
    if (left < 0) throw new OutOfStock(hold.sku, hold.quantity, this.#onShelf(hold.sku));
    this.#shelf.set(hold.sku, left);
    this.#holds.delete(id);
    return left;
  }

  /** Days until `quantity` pieces can be sold, from `date` on; null where no known delivery is enough. */
  daysUntil(sku, quantity, date) {
    const later = this.#deliveries.map(({ period }) => period.from).filter((from) => from > date);
    for (const day of [date, ...later.sort()]) {
      if (this.available(sku, day) >= quantity) return daysBetween(date, day);
    }
    return null;
  }

  #onShelf(sku) {
    return this.#shelf.get(sku) ?? 0;
  }
}

function checkQuantity(quantity) {
  if (!Number.isInteger(quantity) || quantity <= 0) throw new RangeError(`not a quantity: ${quantity}`);
}

function pieces(items) {
  return items.reduce((sum, { quantity }) => sum + quantity, 0);
}
