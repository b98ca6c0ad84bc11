/** Programs near a program, and what a program costs to read. */

import { call, create, exported, get, isData, lit, local } from './program.mjs';
import { NONSENSE, Values, flat, kindOf, sites } from './values.mjs';

export class Variations extends Values {
  // --- programs -----------------------------------------------------------------------------------------------------

  /** A first program for each export and member, for those that no test calls. */
  basics() {
    const programs = [];
    const observe = (expr, steps = []) => programs.push({ steps, observe: expr, wait: false });
    for (const [name, shape] of Object.entries(this.exports[this.file] ?? {})) {
      const target = exported(this.file, name);
      if (shape === 'value') observe(target);
      if (shape === 'function') for (let i = 0; i < 6; i++) observe(call(target, this.freshArgs(name, i)));
      if (shape !== 'class') continue;
      const bind = name[0].toLowerCase() + name.slice(1);
      for (let i = 0; i < 3; i++) {
        const made = [{ bind, expr: create(target, this.freshArgs(`${name}.constructor`, i)), wait: false }];
        for (const m of this.knowledge.classes.get(name) ?? []) {
          const of = m.isStatic ? target : local(bind);
          observe(
            m.call ? call(get(of, m.name), this.freshArgs(`${name}.${m.name}`, i)) : get(of, m.name),
            m.isStatic ? [] : made,
          );
        }
      }
    }
    return programs;
  }

  freshArgs(key, optionalOnes = 1) {
    const params = this.params(key);
    const seen = [...(this.calls.get(key)?.values() ?? [])];
    if (seen.length && this.random.next() < 0.7) return this.random.pick(seen);
    const needed = params.findLastIndex((p) => !p.optional) + 1;
    return params.slice(0, optionalOnes ? params.length : needed).map((p) => this.fresh(p));
  }

  /** Ways to programs that differ from `program` in one place: in what is done, in a likely value, in another. */
  near(program) {
    const acts = [...this.#nearSteps(program), ...this.#otherLooks(program)].map((other) => () => other);
    const likely = [];
    const others = [];
    for (const { expr, name, put } of sites(program, this)) {
      if (isData(expr)) {
        for (const other of this.likelyFor(expr, name)) if (other !== expr) likely.push(() => put(other));
        if (expr.k === 'lit') for (const other of this.nearTo(expr, name)) others.push(() => put(other));
      }
      if (expr.k === 'call' || expr.k === 'new')
        for (const other of this.#nearCalls(expr, program)) likely.push(() => put(other));
    }
    for (const other of this.#equalLeaves(program)) others.push(() => other);
    return { acts, likely, others };
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
    for (const args of [...(this.calls.get(key)?.values() ?? [])].slice(0, 6)) found.push({ ...expr, args });
    return found;
  }

  #nearSteps(program) {
    const { steps } = program;
    const found = [];
    for (const [i, step] of steps.entries()) {
      if (!step.bind)
        found.push({ ...program, steps: steps.toSpliced(i, 1) }, { ...program, steps: steps.toSpliced(i, 0, step) });
      const before = steps[i - 1];
      if (!step.bind && step.expr.k === 'call' && step.expr.fn.k === 'get' && step.expr.fn.of.k === 'var') {
        const expr = this.#someCall(step.expr.fn.of, program);
        if (expr) found.push({ ...program, steps: steps.with(i, { bind: null, expr, wait: false }) });
      }
      if (before && !before.bind && !step.bind)
        found.push({ ...program, steps: steps.with(i, before).with(i - 1, step) });
      const cls = step.bind ? this.classOf(local(step.bind), program) : null;
      if (!cls || steps.length > 8) continue;
      for (const member of this.members(cls)) {
        if (!member.call) continue;
        const expr = call(
          get(local(step.bind), member.name),
          this.freshArgs(`${cls.name}.${member.name}`, this.random.below(2)),
        );
        const at = i + 1 + this.random.below(steps.length - i);
        found.push({ ...program, steps: steps.toSpliced(at, 0, { bind: null, expr, wait: false }) });
      }
    }
    // What a module keeps shows in a second call.
    if (this.knowledge.keepsState && steps.length < 3 && program.observe.k === 'call') {
      const first = { bind: null, expr: program.observe, wait: program.wait };
      for (const { expr, name, put } of sites({ ...program, steps: [] }, this)) {
        if (expr.k === 'lit')
          for (const other of this.likelyFor(expr, name)) found.push({ ...put(other), steps: [...steps, first] });
      }
    }
    return found;
  }

  /** A call of any method of what a variable holds; null where its class isn't known. */
  #someCall(of, program) {
    const cls = this.classOf(of, program);
    const methods = cls ? this.members(cls).filter((m) => m.call) : [];
    if (!methods.length) return null;
    const { name } = this.random.pick(methods);
    return call(get(of, name), this.freshArgs(`${cls.name}.${name}`, this.random.below(2)));
  }

  /** The same steps, then a look at something else; what was looked at becomes a step where it may change things. */
  #otherLooks(program) {
    const found = [];
    for (const { bind } of program.steps) {
      const cls = bind ? this.classOf(local(bind), program) : null;
      if (!cls) continue;
      const kept =
        program.observe.k === 'call'
          ? [...program.steps, { bind: null, expr: program.observe, wait: program.wait }]
          : program.steps;
      for (const member of this.members(cls)) {
        const of = get(local(bind), member.name);
        const observe = member.call ? call(of, this.freshArgs(`${cls.name}.${member.name}`, this.random.below(2))) : of;
        found.push({ steps: kept, observe, wait: false }, { steps: program.steps, observe, wait: false });
      }
    }
    return found;
  }

  /** Two values of one kind made equal, or one apart: what comparisons between two inputs turn on. */
  #equalLeaves(program) {
    const leaves = [...sites(program, this)].filter(({ expr }) => ['number', 'string'].includes(kindOf(expr)));
    const found = [];
    for (const a of leaves.slice(0, 8)) {
      for (const b of leaves.slice(0, 8)) {
        if (a === b || kindOf(a.expr) !== kindOf(b.expr)) continue;
        found.push(a.put(b.expr));
        if (kindOf(b.expr) === 'number') found.push(a.put(lit(b.expr.v + 1)), a.put(lit(b.expr.v - 1)));
      }
    }
    return found;
  }

  /** A program a few random changes away. */
  far(program, most = 3) {
    let changed = program;
    for (let n = 1 + this.random.below(most); n > 0; n--) {
      const places = [...sites(changed, this)].filter(
        ({ expr }) => isData(expr) || expr.k === 'call' || expr.k === 'new',
      );
      const choice = this.random.next();
      let options;
      if (choice < (changed.steps.length ? 0.5 : 0.8) && places.length) {
        const { expr, name, put } = this.random.pick(places);
        const some = this.random.next() < 0.6 ? this.likelyFor(expr, name) : this.alternatives(expr, name);
        options = (isData(expr) ? some : this.#nearCalls(expr, changed)).map(put);
      } else
        options = this.random.pick([
          () => this.#equalLeaves(changed),
          () => this.#nearSteps(changed),
          () => this.#otherLooks(changed),
        ])();
      if (options.length) changed = this.random.pick(options);
    }
    return changed;
  }

  /** Values of another type than any test gives: the last resort. */
  nonsense(program) {
    return [...sites(program, this)].filter(({ expr }) => isData(expr)).flatMap(({ put }) => NONSENSE.map(put));
  }

  // --- what it costs to read ----------------------------------------------------------------------------------------

  cost(program) {
    let sum = program.steps.length * 2 + (program.wait ? 1 : 0);
    for (const { expr, name } of sites(program, this))
      sum += this.#weight(expr, name) + 2.5 * this.#missing(expr, name, program);
    return sum;
  }

  #weight(expr, name) {
    if (expr.k === 'code') return 2;
    if (expr.k !== 'lit') return 1 + (this.isNonsense(expr, name) ? 8 : 0);
    const seen = this.likely.get(name);
    if (seen?.has(flat(expr))) return 1;
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
    if (typeof expr.v === 'number' && !Number.isFinite(expr.v)) return true;
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
      this._kinds.set(name, new Set(seen.length ? seen : read.map((kind) => (kind === 'function' ? 'code' : kind))));
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
      if ((expr.k === 'call' || expr.k === 'new') && expr.args.length < this.#fewest(expr, program)) return true;
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
