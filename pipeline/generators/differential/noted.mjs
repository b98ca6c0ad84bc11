/** What a traced run of the original compares: pairs of values to make equal, and how near each comparison came. */

import { CHOSEN, COMPARED } from './trace.mjs';

const MOST_TEXT = 120; // characters of a pair
const FAR = 8; // from two to this power on, farther is no news
const MOST_APART = 3; // pairs of strings kept of one place

export class Noted {
  #places = new Map(); // place → pairs of different values
  #features = new Set(); // of this run
  #gaps = new Map(); // place → how near two numbers came, of this run
  #known = new Set(); // of all runs

  constructor() {
    globalThis[COMPARED] = (place, operator, a, b) => {
      this.#compared(place, a, b);
      return compare(operator, a, b);
    };
    globalThis[CHOSEN] = (place, value) => {
      this.#features.add(`${place} ${value === null || value === undefined ? 'nothing' : Boolean(value)}`);
      return value;
    };
  }

  clear() {
    this.#places.clear();
    this.#features.clear();
    this.#gaps.clear();
  }

  /** [[place, gap]] of the run since `clear`: the smallest difference above 0 of the numbers compared there. */
  gaps() {
    return [...this.#gaps];
  }

  /** The places where the run since `clear` compared or chose in a way that none before it did. */
  news() {
    const fresh = [...this.#features].filter((feature) => !this.#known.has(feature));
    for (const feature of fresh) this.#known.add(feature);
    return [...new Set(fresh.map((feature) => Number.parseInt(feature, 10)))];
  }

  /** [{ place, a, b }]: of each place the nearest and the last pair of numbers, the first and the last of strings. */
  pairs() {
    return [...this.#places].flatMap(([place, pairs]) => pairs.map(([a, b]) => ({ place, a, b })));
  }

  #compared(place, a, b) {
    this.#features.add(`${place} ${distance(a, b)}`);
    if (Object.is(a, b) || ![a, b].every(isTelling) || String(a).length + String(b).length > MOST_TEXT) return;
    const pairs = this.#places.get(place) ?? [];
    this.#places.set(place, pairs);
    const areNumbers = typeof a === 'number' && typeof b === 'number';
    const gap = areNumbers ? Math.abs(a - b) : Infinity;
    if (gap < (this.#gaps.get(place) ?? Infinity)) this.#gaps.set(place, gap);
    if (areNumbers && pairs.length > 1) pairs.sort(([x, y], [v, w]) => Math.abs(x - y) - Math.abs(v - w)).pop();
    else if (pairs.length >= MOST_APART) pairs.pop();
    if (!pairs.some(([x, y]) => x === a && y === b)) pairs.push([a, b]);
  }
}

const isTelling = (v) => v === null || ['number', 'string', 'undefined'].includes(typeof v);

/** How two compared values lie to each other, in few enough words that many pairs share one. */
function distance(a, b) {
  if (typeof a === 'number' && typeof b === 'number')
    return Math.sign(a - b) * Math.min(FAR, Math.ceil(Math.log2(Math.abs(a - b) + 1)));
  if (typeof a === 'string' && typeof b === 'string') return a < b ? 'less' : a > b ? 'more' : 'equal';
  return `${typeof a} ${typeof b} ${a === b}`;
}

function compare(operator, a, b) {
  switch (operator) {
    case '===':
      return a === b;
    case '!==':
      return a !== b;
    case '==':
      return a == b;
    case '!=':
      return a != b;
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    default:
      return a >= b;
  }
}
