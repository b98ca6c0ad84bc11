/** How like a test that a person would write a program is: what it costs to read, and what in it is out of place. */

import { identity, isData } from './program.mjs';
import { Values, kindOf, sites } from './values.mjs';

export class Likeness extends Values {
  cost(program) {
    let sum = program.steps.length * 2 + (program.wait ? 1 : 0);
    for (const { expr, name } of sites(program, this))
      sum += this.#weight(expr, name) + 2.5 * this.#missing(expr, name, program);
    return sum;
  }

  #weight(expr, name) {
    if (expr.k === 'code') return 2;
    if (expr.k === 'typeof') return 6; // says least of what is there
    if (expr.k !== 'lit') return 1 + (this.isNonsense(expr, name) ? 8 : 0);
    const seen = this.likely.get(name);
    if (seen?.has(identity(expr))) return 1;
    const { v } = expr;
    const stranger = this.isNonsense(expr, name) ? 8 : 0;
    if (v === '') return 2.5 + stranger;
    if (typeof v === 'string') return 1.3 + stranger + v.length * 0.12 + (v.match(/[^\w -]/g)?.length ?? 0) * 0.3;
    if (typeof v === 'number')
      return 1.3 + stranger + String(v).length * 0.15 + (Number.isInteger(v) ? 0 : 1) + (v < 0 ? 0.3 : 0);
    return 1.3 + stranger;
  }

  /** Data of a kind that is out of place under its name. */
  isNonsense(expr, name) {
    if (!isData(expr) || name === null) return false;
    if (typeof expr.v === 'number' && !Number.isFinite(expr.v)) return !this.likely.get(name)?.has(identity(expr));
    const kinds = this.#kindsOf(name);
    return kinds.size > 0 && !kinds.has(kindOf(expr));
  }

  /** The kinds of value that the tests give under a name; where they give none, the kind that the source reads. */
  #kindsOf(name) {
    if (name === null) return new Set();
    if (!this._kinds.has(name)) {
      const seen = [...(this.likely.get(name)?.values() ?? [])].map(kindOf);
      const read = [...this.knowledge.functions.values()]
        .flatMap((f) => f.params)
        .filter((p) => p.name === name && p.kind)
        .map((p) => p.kind);
      const said = read.length ? read : [this.knowledge.kinds.get(name)].filter(Boolean);
      this._kinds.set(name, new Set(seen.length ? seen : said.map((kind) => (kind === 'function' ? 'code' : kind))));
    }
    return this._kinds.get(name);
  }

  /** What a reader misses: arguments that have no default, keys that every such object in the tests has. */
  #missing(expr, name, program) {
    if (expr.k === 'call' || expr.k === 'new') {
      return this.params(this.calleeKey(expr, program))
        .slice(expr.args.length)
        .filter((p) => !p.optional).length;
    }
    if (expr.k !== 'record') return 0;
    const seen = [...(this.likely.get(name)?.values() ?? [])].filter((e) => e.k === 'record');
    if (!seen.length) return 0;
    const [first, ...rest] = seen.map((e) => new Set(e.entries.map(([key]) => key)));
    const own = new Set(expr.entries.map(([key]) => key));
    return [...first].filter((key) => !own.has(key) && rest.every((keys) => keys.has(key))).length;
  }

  /** What no caller would give, not even by mistake: an object for a string, fewer arguments than any test gives. */
  isAbsurd(program) {
    for (const { expr, name } of sites(program, this)) {
      if (this.knowledge.isTyped && this.isNonsense(expr, name)) return true; // a compiler would refuse the test
      if ((expr.k === 'call' || expr.k === 'new') && expr.args.length < this.#fewest(expr, program)) return true;
      if (name !== null && isOddDate(expr) && !this.likely.get(name)?.has(identity(expr))) return true;
      if (!isData(expr) || name === null) continue;
      const kinds = this.#kindsOf(name);
      const isHollow = expr.k === 'lit' && (expr.v === null || expr.v === undefined);
      if (
        kinds.size &&
        !isHollow &&
        !kinds.has(kindOf(expr)) &&
        (expr.k !== 'lit' || ['list', 'record', 'code'].some((k) => kinds.has(k)))
      )
        return true;
    }
    return false;
  }

  #fewest(expr, program) {
    const key = this.calleeKey(expr, program);
    const seen = [...(this.calls.get(key)?.values() ?? [])];
    if (!seen.length) return 0;
    return Math.min(this.params(key).findLastIndex((p) => !p.optional) + 1, ...seen.map((args) => args.length));
  }

  /** Would a reader take this program for a test somebody meant? */
  isSane(program) {
    for (const { expr, name } of sites(program, this)) {
      if (this.isNonsense(expr, name)) return false;
      if (this.#missing(expr, name, program)) return false;
    }
    return true;
  }
}

const DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{3})?)?(Z|[+-]\d\d:\d\d)?)?$/;

/** Is it a date of a text that nobody writes, though an engine may read it? */
function isOddDate({ k, cls, args }) {
  const text = k === 'new' && cls.name === 'Date' && args.length === 1 ? args[0].v : undefined;
  return typeof text === 'string' && !DATE.test(text) && !Number.isNaN(Date.parse(text));
}
