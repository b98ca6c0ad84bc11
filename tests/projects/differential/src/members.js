export default class Span {
  static #most = 24;

  #hours;

  constructor(hours) {
    this.#hours = Span.#limited(hours);
  }

  static of(days) {
    return new Span(days * 8);
  }

  static #limited(hours) {
    return hours > Span.#most ? Span.#most : hours;
  }

  get minutes() {
    return this.#hours * 60;
  }

  grow(by) {
    this.#hours += by;
  }
}
