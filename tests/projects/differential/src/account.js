export class Overdrawn extends Error {
  constructor(missing) {
    super(`${missing} short`);
    this.name = 'Overdrawn';
    this.missing = missing;
  }
}

export class Account {
  #balance = 0;
  #entries = [];

  constructor({ limit = 0 } = {}) {
    this.limit = limit;
  }

  deposit(amount) {
    if (amount <= 0) throw new RangeError('nothing to deposit');
    this.#book('in', amount);
    return this;
  }

  withdraw(amount) {
    const left = this.#balance - amount;
    if (left < -this.limit) throw new Overdrawn(-left - this.limit);
    this.#book('out', -amount);
    return this;
  }

  get balance() {
    return this.#balance;
  }

  *entries() {
    yield* this.#entries;
  }

  #book(kind, amount) {
    this.#balance += amount;
    this.#entries.push({ kind, amount });
  }
}
