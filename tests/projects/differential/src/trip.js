export class Trip {
  #seats = 0;
  #deal = null;

  book(seats) {
    this.#seats += Math.abs(seats);
  }

  cancel(seats) {
    this.#seats = Math.max(0, this.#seats - seats);
  }

  accept(deal) {
    if (this.#seats < (deal.least ?? 0)) throw new RangeError(`not enough seats for ${deal.name}`);
    this.#deal = deal;
  }

  /** A deal that asks for more seats than are left has no effect. */
  get price() {
    const least = this.#deal?.least ?? 0;
    return this.#deal && this.#seats >= least ? this.#seats * this.#deal.each : this.#seats * 73;
  }
}
