/** What a traced run compares: pairs of values to make equal or different, and how near each comparison came. */

import { CHOSEN, COMPARED, LOOKED, SWITCHED } from './trace.mjs';

const MOST_TEXT = 120; // characters of a pair
const FAR = 8; // from two to this power on, farther is no news
const MOST_APART = 3; // pairs of strings kept of one place
const MOST_SOUGHT = 8; // of what is there, where a key is looked up
const MOST_ALL = 800; // pairs of one run

export class Noted {
  #places = new Map(); // place → pairs of different values
  #equal = new Map(); // place → the last value that was compared with its equal
  #all = new Map(); // every pair, by its text
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
    globalThis[LOOKED] = (place, where, key) => {
      if (typeof key === 'string') this.#looked(place, where, key);
      return key;
    };
    globalThis[SWITCHED] = (place, value, cases) => {
      for (const other of cases) this.#keep(place, value, other, cases.length);
      this.#features.add(`${place} ${cases.indexOf(value)}`);
      return value;
    };
  }

  clear() {
    for (const kept of [this.#places, this.#equal, this.#all, this.#features, this.#gaps]) kept.clear();
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

  /**
   * [{ place, a, b }]: of each place the nearest and the last pair of numbers, the first and the last of strings; with `same`,
   * where a value was only ever compared with its equal.
   */
  pairs() {
    const different = [...this.#places].flatMap(([place, pairs]) => pairs.map(([a, b]) => ({ place, a, b })));
    const equal = [...this.#equal].filter(([place]) => !this.#places.has(place));
    return [...different, ...equal.map(([place, a]) => ({ place, a, b: a, same: true }))];
  }

  /** Every pair of different values, by a text that is the same for equal pairs only. */
  all() {
    return new Map(this.#all);
  }

  #compared(place, a, b) {
    this.#features.add(`${place} ${distance(a, b)}`);
    this.#keep(place, a, b, MOST_APART);
    if (typeof a !== 'number' || typeof b !== 'number' || a === b) return;
    const gap = Math.abs(a - b);
    if (gap < (this.#gaps.get(place) ?? Infinity)) this.#gaps.set(place, gap);
  }

  #keep(place, a, b, most) {
    if (![a, b].every(isTelling) || String(a).length + String(b).length > MOST_TEXT) return;
    if (Object.is(a, b)) return void this.#equal.set(place, a);
    if (this.#all.size < MOST_ALL) this.#all.set(`${typeof a} ${a}\n${typeof b} ${b}`, { place, a, b });
    const pairs = this.#places.get(place) ?? [];
    this.#places.set(place, pairs);
    const areNumbers = typeof a === 'number' && typeof b === 'number';
    if (areNumbers && pairs.length > 1) pairs.sort(([x, y], [v, w]) => Math.abs(x - y) - Math.abs(v - w)).pop();
    else if (pairs.length >= most) pairs.pop();
    if (!pairs.some(([x, y]) => x === a && y === b)) pairs.push([a, b]);
  }

  /** A key that is looked up is compared with what is there; a part of a text that is looked for, with the text around it. */
  #looked(place, where, key) {
    if (typeof where === 'string') {
      const [whole, at] = [where, where.indexOf(key)];
      const middle = whole.length >> 1;
      const other = at < 0 ? whole.slice(0, middle) + key + whole.slice(middle) : whole.slice(0, at) + whole.slice(at + key.length);
      this.#features.add(`${place} ${at < 0 ? 'nowhere' : at === 0 ? 'first' : 'within'}`);
      return void this.#keep(place, whole, other, MOST_APART);
    }
    const there = keysIn(where);
    this.#features.add(`${place} ${there.includes(key) ? 'found' : 'missing'}`);
    for (const other of there.slice(0, MOST_SOUGHT)) this.#keep(place, key, other, MOST_SOUGHT);
  }
}

/** The texts that a key is compared with, where it is looked up. */
function keysIn(where) {
  if (Array.isArray(where)) return where.filter((v) => typeof v === 'string');
  if (where instanceof Map || where instanceof Set) return [...where.keys()].filter((v) => typeof v === 'string');
  if (where === null || typeof where !== 'object') return [];
  const isPlain = Object.getPrototypeOf(where) === Object.prototype;
  return [...Object.keys(where).slice(0, MOST_SOUGHT - 1), ...(isPlain ? ['toString'] : [])]; // as all plain objects have
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

/** A short name of the way a run took: what it visited, and whether once, twice or often. */
export function wayOf(visits) {
  let hash = 2166136261;
  for (const [id, count] of Object.entries(visits)) {
    hash = Math.imul(hash ^ Number(id), 16777619);
    hash = Math.imul(hash ^ Math.min(count, 3), 16777619);
  }
  return hash;
}
