/** Programs near a program: one place of it changed, or a few. */

import { create, global, identity, isData, list, lit, record, variables } from './program.mjs';
import { Sequences } from './sequences.mjs';
import { partsOf } from './strings.mjs';
import { NONSENSE, kindOf, sites } from './values.mjs';

/** What reads as a text and is none. */
const asTexts = (text) => [list([text]), create(global('String'), [text])];

const SOME = 4; // values for what no test gives

export class Variations extends Sequences {
  /** Ways to programs that differ from `program` in one place: in what is done, in a likely value, in how a value is built, in another. */
  near(program) {
    const acts = [...this.otherSteps(program), ...this.otherLooks(program)].map((other) => () => other);
    const likely = [];
    const others = [];
    const shaped = [...this.#equalLeaves(program), ...this.#givenTwice(program)].map((other) => () => other);
    for (const { expr, name, put } of sites(program, this)) {
      if (isData(expr)) {
        for (const other of this.likelyFor(expr, name)) if (other !== expr) likely.push(() => put(other));
        if (expr.k === 'lit') for (const other of this.nearTo(expr, name)) others.push(() => put(other));
        if (typeof expr.v === 'string') for (const other of this.reshaped(expr.v)) shaped.push(() => put(lit(other)));
        if (expr.k === 'list' || expr.k === 'record') for (const other of this.nearTo(expr, name)) shaped.push(() => put(other));
      }
      if (expr.k === 'call' || expr.k === 'new')
        for (const other of this.#nearCalls(expr, program)) acts.push(() => put(other));
    }
    return { acts, likely, shaped, others };
  }

  #nearCalls(expr, program) {
    const key = this.calleeKey(expr, program);
    const next = this.params(key)[expr.args.length];
    const found = [];
    if (next) {
      const pool = [...(this.pools.get(next.name)?.values() ?? [])];
      for (const value of [...pool.slice(0, 6), this.fresh(next), this.fresh(next)])
        found.push({ ...expr, args: [...expr.args, value] });
    }
    if (expr.args.length) found.push({ ...expr, args: expr.args.slice(0, -1) });
    const isMade = (name) => program.steps.some((s) => s.bind === name);
    for (const args of [...(this.calls.get(key)?.values() ?? [])].slice(0, 6))
      if (args.flatMap(variables).every(isMade)) found.push({ ...expr, args });
    return found;
  }

  /** The same calls with what no test gives: arguments, and keys of objects, that only the source speaks of. */
  ungiven(program) {
    return sites(program, this).flatMap(({ expr, name, put }) => {
      if (expr.k === 'record')
        return this.missingKeys(expr, name)
          .filter((key) => !this.likely.has(key))
          .flatMap((key) => this.#some({ name: key }).map((value) => put(record([...expr.entries, [key, value]]))));
      if (expr.k !== 'call' && expr.k !== 'new') return [];
      const key = this.calleeKey(expr, program);
      const next = this.params(key)[expr.args.length];
      const isGiven = [...(this.calls.get(key)?.values() ?? [])].some((args) => args.length > expr.args.length);
      return next && !isGiven ? this.#some(next).map((value) => put({ ...expr, args: [...expr.args, value] })) : [];
    });
  }

  #some(param) {
    return Array.from({ length: SOME }, () => this.fresh(param));
  }

  /** Two values of one kind made equal, or one apart: what comparisons between two inputs turn on. */
  #equalLeaves(program) {
    const leaves = sites(program, this).filter(({ expr }) => ['number', 'string'].includes(kindOf(expr)));
    const found = [];
    for (const a of leaves.slice(0, 8)) {
      for (const b of leaves.slice(0, 8)) {
        if (a === b || kindOf(a.expr) !== kindOf(b.expr)) continue;
        found.push(a.put(b.expr));
        if (kindOf(b.expr) === 'string') found.push(...this.#derived(b.expr.v).map((s) => a.put(lit(s))));
        if (kindOf(b.expr) === 'number') found.push(a.put(lit(b.expr.v + 1)), a.put(lit(b.expr.v - 1)));
      }
    }
    return found;
  }

  /** One argument of a call in place of another: what compares its arguments, or looks one up in the other, turns on that. */
  #givenTwice(program) {
    return sites(program, this).flatMap(({ expr, put }) => {
      if ((expr.k !== 'call' && expr.k !== 'new') || expr.args.length < 2 || expr.args.length > 4) return [];
      const isValue = (e) => isData(e) || (e.k === 'new' && e.cls.k === 'global');
      return expr.args.flatMap((arg, i) =>
        expr.args
          .filter((other, j) => j !== i && isValue(arg) && isValue(other) && identity(other) !== identity(arg))
          .map((other) => put({ ...expr, args: expr.args.with(i, other) })),
      );
    });
  }

  /** What one string of an input may have to do with another: a part of it, or nearly the same. */
  #derived(s) {
    const parts = partsOf(s);
    const near = this.nearStrings(s);
    return [...(parts.length ? [this.random.pick(parts)] : []), ...(near.length ? [this.random.pick(near)] : []), s.slice(0, -1)];
  }

  /** A program a few random changes away. */
  far(program, most = 3) {
    let changed = program;
    for (let n = 1 + this.random.below(most); n > 0; n--) {
      const places = sites(changed, this).filter(({ expr }) => isData(expr) || expr.k === 'call' || expr.k === 'new');
      const choice = this.random.next();
      let options;
      if (choice < (changed.steps.length ? 0.5 : 0.8) && places.length) {
        const { expr, name, put } = this.random.pick(places);
        const some =
          this.random.next() < (changed.steps.length ? 0.8 : 0.6)
            ? this.likelyFor(expr, name)
            : this.alternatives(expr, name);
        options = (isData(expr) ? some : this.#nearCalls(expr, changed)).map(put);
      } else
        options = this.random.pick([
          () => this.#equalLeaves(changed),
          () => this.#givenTwice(changed),
          () => this.otherSteps(changed),
          () => this.otherLooks(changed),
        ])();
      if (options.length) changed = this.random.pick(options);
    }
    return changed;
  }

  /** Arguments left out, the fewest first, empty objects and lists, and what is taken for a text. */
  hollow(program) {
    return sites(program, this).flatMap(({ expr, put }) => {
      if (expr.k === 'record' || expr.k === 'list') return [put(expr.k === 'list' ? list([]) : record([]))];
      // Where a module keeps what it was given, a list that reads as its one item would be taken for it later on.
      if (expr.k === 'lit' && typeof expr.v === 'string') return this.knowledge.keepsState ? [] : asTexts(expr).map(put);
      if (expr.k !== 'call' && expr.k !== 'new') return [];
      return expr.args.map((_, i) => put({ ...expr, args: expr.args.slice(0, expr.args.length - 1 - i) }));
    });
  }

  /** Values of another type than any test gives. */
  nonsense(program) {
    return sites(program, this)
      .filter(({ expr }) => isData(expr))
      .flatMap(({ put }) => NONSENSE.map(put));
  }
}
