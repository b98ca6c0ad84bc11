export class Cart {
  #total = 0;

  add(price) {
    this.#total += price;
    return this;
  }

  redeem(code) {
    if (code !== 'GIFT') throw new RangeError(`no ${code}`);
    return this.#total > 10 ? this.#total - 10 : 0;
  }
}

export const quarter = (day) => Math.floor(day.getUTCMonth() / 3) + 1;
export const isLate = (day, limit) => day > limit;

export function greeted(text) {
  if (typeof text !== 'string') return 'nobody';
  const match = /^hello (\w+)$/.exec(text);
  return match ? match[1] : 'nobody';
}
