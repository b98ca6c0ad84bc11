/**
 * Programs near a program, and what a program costs to read. Values come from the existing tests and the source; a
 * name (of a parameter or a key) draws values that were seen under that name.
 */

import { call, children, code, create, exported, get, isData, lit, list, local, print, record, walkProgram } from './program.mjs';

export class Random {
  constructor(seed) {
    this.state = seed | 0;
  }

  next() {
    this.state = (this.state + 0x9e3779b9) | 0; // splitmix32
    let t = this.state ^ (this.state >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t = Math.imul(t ^ (t >>> 15), 0x735a2d97);
    return ((t ^ (t >>> 15)) >>> 0) / 2 ** 32;
  }

  below(n) {
    return Math.floor(this.next() * n);
  }

  pick(items) {
    return items[this.below(items.length)];
  }
}

const CALLBACKS = ['() => true', '() => false', '(x) => x', '() => {}'].map(code);
const CHARACTERS = ['a', 'B', '0', '9', ' ', '-', '_', '.', ',', '"', "'", '(', ')', '/', '\\', '\n', 'é'];
const NONSENSE = [undefined, null, '', 0, 'x', true, -1, 0.5].map(lit);

const kindOf = (expr) => (expr.k !== 'lit' ? expr.k : expr.v === null ? 'null' : typeof expr.v);
const flat = (expr) => print(expr, { column: -Infinity });

export class Variations {
  /** exports: file → name → class | function | value, as the worker found them. */
  constructor(knowledge, seeds, exports, file, random) {
    Object.assign(this, { knowledge, exports, file, random });
    this.pools = new Map(); // name → fingerprint → expr
    this._kinds = new Map();
    this.calls = new Map(); // function or Class.method → fingerprint → arguments that the tests give
    for (const [name, values] of knowledge.named) for (const value of values) this.#pool(name).set(flat(lit(value)), lit(value));
    this.likely = new Map(); // as pools, from the tests alone
    this.seen = new Map(); // every literal that the tests give, whatever its name
    for (const program of seeds) this.#learn(program);
    this.numbers = [...new Set([0, 1, 2, -1, 10, 100, ...[...knowledge.numbers].flatMap((n) => [n, n + 1, n - 1])])];
    this.strings = [...new Set(['', 'a', 'A', ' ', 'a b', ...knowledge.strings, ...[...knowledge.strings].map((s) => s.toUpperCase()), ...[...knowledge.strings].map((s) => s.toLowerCase())])];
  }

  #pool(name, pools = this.pools) {
    if (!pools.has(name)) pools.set(name, new Map());
    return pools.get(name);
  }

  #learn(program) {
    for (const { expr, name } of sites(program, this)) {
      if (!isData(expr) || name === null) continue;
      this.#pool(name).set(flat(expr), expr);
      this.#pool(name, this.likely).set(flat(expr), expr);
      if (expr.k === 'lit') this.seen.set(flat(expr), expr);
    }
    for (const expr of walkProgram(program)) {
      const key = expr.k === 'call' || expr.k === 'new' ? this.calleeKey(expr, program) : null;
      if (key) this.#pool(key, this.calls).set(flat(expr), expr.args);
    }
  }

  // --- what is known of callees -------------------------------------------------------------------------------------

  /** 'total' or 'Cart.total': the name by which `functions` knows what is called. */
  calleeKey(expr, program) {
    if (expr.k === 'new') return expr.cls.k === 'export' ? `${expr.cls.name}.constructor` : null;
    const { fn } = expr;
    if (fn.k === 'export') return fn.name;
    if (fn.k !== 'get') return null;
    const cls = this.classOf(fn.of, program);
    return cls ? `${cls.name}.${fn.name}` : null;
  }

  /** The export expr of the class whose instance (or static side) `expr` is. */
  classOf(expr, program) {
    if (expr.k === 'export') return this.isClass(expr) ? expr : null;
    if (expr.k === 'new') return expr.cls.k === 'export' ? expr.cls : null;
    if (expr.k === 'call') {
      if (expr.fn.k === 'get') return this.classOf(expr.fn.of, program); // a chained call, or a factory
      return null;
    }
    if (expr.k !== 'var') return null;
    const made = program.steps.find((s) => s.bind === expr.name)?.expr;
    return made ? this.classOf(made, program) : null;
  }

  isClass(expr) {
    return this.exports[expr.file]?.[expr.name] === 'class';
  }

  params(key) {
    return this.knowledge.functions.get(key)?.params ?? [];
  }

  members(cls) {
    return (this.knowledge.classes.get(cls.name) ?? []).filter((m) => !m.isStatic);
  }

  // --- values -------------------------------------------------------------------------------------------------------

  /** A value for a parameter or key: seen under its name, else made from its kind. */
  fresh({ name, kind = null, keys = [] }, depth = 0) {
    const pool = [...(this.pools.get(name)?.values() ?? [])];
    if (pool.length && this.random.next() < 0.7) {
      const seen = this.random.pick(pool);
      return this.random.next() < 0.6 || !isData(seen) ? seen : (this.random.pick(this.#near(seen, name)) ?? seen);
    }
    const cls = [...this.knowledge.classes.keys()].find((c) => c.toLowerCase() === String(name).toLowerCase());
    if (cls && this.exports[this.file]?.[cls] === 'class') return create(exported(this.file, cls), []);
    switch (kind ?? (pool.length ? kindOf(pool[0]) : null)) {
      case 'number':
        return this.#literal('number', this.numbers);
      case 'string':
        return this.#literal('string', this.strings);
      case 'boolean':
        return lit(this.random.next() < 0.5);
      case 'function':
        return this.random.pick(CALLBACKS);
      case 'list': {
        const element = { name: elementOf(name) };
        return list(Array.from({ length: depth > 2 ? 0 : this.random.below(4) }, () => this.fresh(element, depth + 1)));
      }
      case 'record':
        return record(keys.filter(() => this.random.next() < 0.7).map((key) => [key, depth > 2 ? lit(1) : this.fresh({ name: key }, depth + 1)]));
      default:
        return this.random.next() < 0.5 ? this.#literal('number', this.numbers) : this.#literal('string', this.strings);
    }
  }

  /** One that the tests give somewhere, or one that the source suggests. */
  #literal(kind, suggested) {
    const seen = [...this.seen.values()].filter((e) => kindOf(e) === kind);
    return seen.length && this.random.next() < 0.5 ? this.random.pick(seen) : lit(this.random.pick(suggested));
  }

  /** Exprs to stand where `expr` stands. */
  alternatives(expr, name) {
    return [...this.likelyFor(expr, name), ...this.#near(expr, name)];
  }

  /** Those that a reader of the tests would think of: seen under the same name, flipped, one item more or less. */
  likelyFor(expr, name) {
    const pool = [...(this.pools.get(name)?.values() ?? [])];
    switch (kindOf(expr)) {
      case 'number':
        return [...pool, lit(expr.v + 1), lit(expr.v - 1), lit(0)];
      case 'string':
        return [...pool, lit('')];
      default:
        return [...pool, ...this.#near(expr, name)];
    }
  }

  #near(expr, name) {
    switch (kindOf(expr)) {
      case 'number': {
        const n = expr.v;
        return [...new Set([n + 1, n - 1, 0, 1, -n, n * 2, n * 10, n * 1000, Math.trunc(n / 2), n + 0.5, ...this.numbers])].map(lit);
      }
      case 'string':
        return [...this.strings, ...this.#nearStrings(expr.v)].map(lit);
      case 'boolean':
        return [lit(!expr.v)];
      case 'list':
        return this.#nearLists(expr, name);
      case 'record':
        return [
          ...expr.entries.map((_, i) => record(expr.entries.toSpliced(i, 1))),
          ...this.#missingKeys(expr, name).map((key) => record([...expr.entries, [key, this.fresh({ name: key, kind: this.#kindOfKey(key) })]])),
        ];
      case 'code':
        return CALLBACKS;
      default:
        return [lit(0), lit(1), lit('a'), lit(true)];
    }
  }

  #nearStrings(s) {
    const at = this.random.below(s.length + 1);
    const c = this.random.pick(CHARACTERS);
    const other = this.random.pick(this.strings);
    const step = (by) => s.replace(/\d+(?!.*\d)/, (d) => String(Math.max(0, Number(d) + by)).padStart(d.length, '0'));
    return [
      ` ${s}`, `${s} `, s + s, s.toUpperCase(), s.toLowerCase(), s.slice(0, -1), s.slice(1), c + s, s + c,
      s.slice(0, at) + c + s.slice(at), s.slice(0, at) + s.slice(at + 1), s.slice(0, at) + s.slice(at, at + 1) + s.slice(at),
      s.slice(0, at) + other + s.slice(at), `${s} ${other}`, other + s, s + other, step(1), step(-1), step(10),
      s.replace(/\d+/g, (d) => String(this.random.below(10 ** d.length)).padStart(d.length, '0')), s.slice(0, at), s.slice(at),
      [...s].reverse().join(''), `x${s}`, `${s}1`, s.repeat(5),
    ].filter((t) => t !== s && t.length < 120);
  }

  #nearLists({ items }, name) {
    const found = [list([])];
    for (const [i, item] of items.slice(0, 5).entries()) {
      found.push(list(items.toSpliced(i, 1)), list([...items, item]), list(items.toSpliced(i, 0, item)));
      if (i) found.push(list(items.with(i, items[i - 1]).with(i - 1, item)));
    }
    if (items.length > 1) found.push(list(items.toReversed()));
    const [element] = items;
    if (element) {
      const change = this.random.pick(this.alternativesWithin(element, elementOf(name)));
      if (change) found.push(list([...items, change]), list([change, ...items]));
    } else found.push(list([this.fresh({ name: elementOf(name) })]));
    return found;
  }

  /** As `alternatives`, one level down as well. */
  alternativesWithin(expr, name) {
    const below = children(expr).flatMap(([child, put, key]) => (isData(child) ? this.alternatives(child, expr.k === 'list' ? elementOf(name) : key).map(put) : []));
    return [...this.alternatives(expr, name), ...below];
  }

  #missingKeys(expr, name) {
    const known = new Set(this.keysOf.get(name) ?? []);
    for (const [key] of expr.entries) known.delete(key);
    return [...known];
  }

  #kindOfKey(key) {
    const seen = this.pools.get(key)?.values().next().value;
    return seen ? kindOf(seen) : null;
  }

  /** Parameter or key name → keys read from such an object in the source, or given in the tests. */
  get keysOf() {
    if (this._keysOf) return this._keysOf;
    this._keysOf = new Map();
    const add = (name, keys) => this._keysOf.set(name, new Set([...(this._keysOf.get(name) ?? []), ...keys]));
    for (const { params } of this.knowledge.functions.values()) {
      for (const p of params) {
        add(p.name, p.keys);
      }
    }
    for (const [name, keys] of this.knowledge.keys) {
      add(name, keys);
      add(elementOf(`${name}s`), keys); // what an item of a list is called in the source: product, products
    }
    for (const [name, pool] of this.pools) for (const e of pool.values()) if (e.k === 'record') add(name, e.entries.map(([key]) => key));
    return this._keysOf;
  }

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
          observe(m.call ? call(get(of, m.name), this.freshArgs(`${name}.${m.name}`, i)) : get(of, m.name), m.isStatic ? [] : made);
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

  /** Ways to programs that differ from `program` in one place: { likely, others }. */
  near(program) {
    const likely = [];
    const others = [];
    for (const { expr, name, put } of sites(program, this)) {
      if (isData(expr)) {
        for (const other of this.likelyFor(expr, name)) if (other !== expr) likely.push(() => put(other));
        if (expr.k === 'lit') for (const other of this.#near(expr, name)) others.push(() => put(other));
      }
      if (expr.k === 'call' || expr.k === 'new') for (const other of this.#nearCalls(expr, program)) likely.push(() => put(other));
    }
    for (const other of [...this.#nearSteps(program), ...this.#otherLooks(program)]) likely.push(() => other);
    for (const other of this.#equalLeaves(program)) others.push(() => other);
    return { likely, others };
  }

  #nearCalls(expr, program) {
    const key = this.calleeKey(expr, program);
    const next = this.params(key)[expr.args.length];
    const found = [];
    if (next) {
      const pool = [...(this.pools.get(next.name)?.values() ?? [])];
      for (const value of [...pool.slice(0, 6), this.fresh(next), this.fresh(next)]) found.push({ ...expr, args: [...expr.args, value] });
    }
    if (expr.args.length) found.push({ ...expr, args: expr.args.slice(0, -1) });
    for (const args of [...(this.calls.get(key)?.values() ?? [])].slice(0, 6)) found.push({ ...expr, args });
    return found;
  }

  #nearSteps(program) {
    const { steps } = program;
    const found = [];
    for (const [i, step] of steps.entries()) {
      if (!step.bind) found.push({ ...program, steps: steps.toSpliced(i, 1) }, { ...program, steps: steps.toSpliced(i, 0, step) });
      const before = steps[i - 1];
      if (!step.bind && step.expr.k === 'call' && step.expr.fn.k === 'get' && step.expr.fn.of.k === 'var') {
        const expr = this.#someCall(step.expr.fn.of, program);
        if (expr) found.push({ ...program, steps: steps.with(i, { bind: null, expr, wait: false }) });
      }
      if (before && !before.bind && !step.bind) found.push({ ...program, steps: steps.with(i, before).with(i - 1, step) });
      const cls = step.bind ? this.classOf(local(step.bind), program) : null;
      if (!cls || steps.length > 8) continue;
      for (const member of this.members(cls)) {
        if (!member.call) continue;
        const expr = call(get(local(step.bind), member.name), this.freshArgs(`${cls.name}.${member.name}`, this.random.below(2)));
        const at = i + 1 + this.random.below(steps.length - i);
        found.push({ ...program, steps: steps.toSpliced(at, 0, { bind: null, expr, wait: false }) });
      }
    }
    // What a module keeps shows in a second call.
    if (this.knowledge.keepsState && steps.length < 3 && program.observe.k === 'call') {
      const first = { bind: null, expr: program.observe, wait: program.wait };
      for (const { expr, name, put } of sites({ ...program, steps: [] }, this)) {
        if (expr.k === 'lit') for (const other of this.likelyFor(expr, name)) found.push({ ...put(other), steps: [...steps, first] });
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
      const kept = program.observe.k === 'call' ? [...program.steps, { bind: null, expr: program.observe, wait: program.wait }] : program.steps;
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
      const places = [...sites(changed, this)].filter(({ expr }) => isData(expr) || expr.k === 'call' || expr.k === 'new');
      const choice = this.random.next();
      let options;
      if (choice < (changed.steps.length ? 0.5 : 0.8) && places.length) {
        const { expr, name, put } = this.random.pick(places);
        const some = this.random.next() < 0.6 ? this.likelyFor(expr, name) : this.alternatives(expr, name);
        options = (isData(expr) ? some : this.#nearCalls(expr, changed)).map(put);
      } else options = this.random.pick([() => this.#equalLeaves(changed), () => this.#nearSteps(changed), () => this.#otherLooks(changed)])();
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
    for (const { expr, name } of sites(program, this)) sum += this.#weight(expr, name) + 2.5 * this.#missing(expr, name, program);
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
    if (typeof v === 'number') return 1.3 + stranger + String(v).length * 0.15 + (Number.isInteger(v) ? 0 : 1) + (v < 0 ? 0.3 : 0);
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
      const read = [...this.knowledge.functions.values()].flatMap((f) => f.params).filter((p) => p.name === name && p.kind).map((p) => p.kind);
      this._kinds.set(name, new Set(seen.length ? seen : read.map((kind) => (kind === 'function' ? 'code' : kind))));
    }
    return this._kinds.get(name);
  }

  /** What a reader misses: arguments that have no default, keys that every such object in the tests has. */
  #missing(expr, name, program) {
    if (expr.k === 'call' || expr.k === 'new') {
      return this.params(this.calleeKey(expr, program)).slice(expr.args.length).filter((p) => !p.optional).length;
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
      if (kinds.size && !isHollow && !kinds.has(kindOf(expr)) && (expr.k !== 'lit' || ['list', 'record', 'code'].some((k) => kinds.has(k)))) return true;
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

/** The name that a list's items go by. */
const elementOf = (name) => (name === null || name === undefined ? null : `${name}[]`);

/** Every expr of a program with the name it goes by and the way to an equal program with another in its place. */
export function* sites(program, variations) {
  for (const [i, step] of program.steps.entries()) {
    yield* visit(step.expr, null, (expr) => ({ ...program, steps: program.steps.with(i, { ...step, expr }) }));
  }
  yield* visit(program.observe, null, (observe) => ({ ...program, observe }));

  function* visit(expr, name, put) {
    yield { expr, name, put };
    const params = expr.k === 'call' || expr.k === 'new' ? variations.params(variations.calleeKey(expr, program)) : [];
    for (const [child, replace, key] of children(expr)) {
      const inner = expr.k === 'record' ? key : expr.k === 'list' ? elementOf(name) : typeof key === 'number' ? (params[key]?.name ?? null) : null;
      yield* visit(child, inner, (to) => put(replace(to)));
    }
  }
}
