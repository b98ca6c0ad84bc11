/**
 * The calls that the existing tests make, recorded as they run: what they call, with what, in which order. What the
 * project gives to a test is handed out behind proxies that note each use; what comes back is known by a name.
 */

import { Unprintable, call, code, create, describe, exported, get, lit, list, local, record, variables } from './program.mjs';

const MOST_STEPS = 9;
const MOST_PROGRAMS = 1500;
const MOST_OF_ONE = 400; // programs that end in a call of one thing
const LONGEST = 400; // characters of a callback

class Unreadable extends Error {}

export class Recorder {
  programs = [];
  #steps = [];
  #counts = new Map();
  #real = new WeakMap(); // proxy → the value behind it
  #exprs = new WeakMap(); // proxy → the expr that gives it
  #inside = 0; // calls of the project that are running: what it calls itself is not the test's

  /** A new case: nothing was done before. */
  begin() {
    this.#steps = [];
  }

  /** A namespace as a test may see it. isWhole: module.exports stands for all of it. */
  namespace(file, namespace, isWhole) {
    const from = (name) => {
      const whole = exported(file, isWhole ? 'default' : name);
      return this.wrap(namespace[name], isWhole && name !== 'default' ? get(whole, name) : whole);
    };
    return Object.fromEntries(Object.keys(namespace).map((name) => [name, from(name)]));
  }

  /**
   * A namespace as another module of the project may see it: calls of its functions are noted by themselves, and what
   * they give is handed on as it is.
   */
  within(file, namespace, isWhole) {
    const noting = (value, expr) => {
      if (typeof value !== 'function' || /^class\b/.test(Function.prototype.toString.call(value))) return value;
      return new Proxy(value, {
        apply: (target, self, args) => {
          this.#noteInner(expr, args);
          return Reflect.apply(target, self, args);
        },
      });
    };
    const name = (key) => exported(file, isWhole ? 'default' : key);
    const members = (whole) =>
      Object.fromEntries(Object.entries(whole).map(([key, v]) => [key, noting(v, get(name('default'), key))]));
    const isBag = isWhole && Object.getPrototypeOf(namespace.default ?? 0) === Object.prototype;
    const given = Object.entries(namespace).map(([key, v]) => [key, noting(v, name(key))]);
    return { ...Object.fromEntries(given), ...(isBag ? { default: members(namespace.default) } : {}) };
  }

  #noteInner(expr, args) {
    try {
      const program = call(expr, args.map((a) => this.#exprOf(a)));
      if (!variables(program).length) this.#note(program, undefined);
    } catch (error) {
      if (!(error instanceof Unreadable) && !(error instanceof Unprintable)) throw error;
    }
  }

  /** A value behind a proxy, where there is something to call on it; itself where there is not. */
  wrap(value, expr) {
    if (!isTelling(value) || this.#real.has(value)) return value;
    const proxy = new Proxy(value, {
      get: (target, key) => this.#member(target, key, expr, proxy),
      apply: (target, self, args) => this.#called(target, self, args, (given) => call(expr, given)),
      construct: (target, args) => this.#called(target, null, args, (given) => create(expr, given)),
    });
    this.#real.set(proxy, value);
    this.#exprs.set(proxy, expr);
    return proxy;
  }

  #member(target, key, expr, proxy) {
    if (typeof target === 'function' && key === 'bind') return (_, ...first) => (...rest) => proxy(...first, ...rest);
    if (typeof target === 'function' && key === 'call' && !this.#inside) return (_, ...args) => proxy(...args);
    const value = Reflect.get(target, key, target);
    if (typeof key !== 'string' || key === 'prototype' || key === 'constructor' || this.#inside) return value;
    const descriptor = Object.getOwnPropertyDescriptor(target, key);
    if (descriptor && !descriptor.configurable && !descriptor.writable) return value;
    const of = get(expr, key);
    if (typeof value !== 'function' && expr.k === 'var') this.#note(of, value);
    return this.wrap(value, of);
  }

  #called(target, self, args, make) {
    const given = args.map((a) => this.#behind(a));
    let expr = null;
    if (!this.#inside) {
      try {
        expr = make(args.map((a) => this.#exprOf(a)));
      } catch (error) {
        if (!(error instanceof Unreadable) && !(error instanceof Unprintable)) throw error;
      }
    }
    this.#inside++;
    let result;
    let failed = true;
    try {
      result = self === null ? Reflect.construct(target, given) : Reflect.apply(target, this.#behind(self), given);
      failed = false;
    } finally {
      this.#inside--;
      if (expr && failed) this.#note(expr, undefined);
    }
    return expr ? this.#outcome(expr, result) : result;
  }

  /** Notes a call; what it gives is named where it is something that can be used further. */
  #outcome(expr, result) {
    this.#note(expr, result);
    const isPromise = typeof result?.then === 'function';
    const isNamed = isTelling(result) && !isPromise;
    const acts = expr.k === 'call' && expr.fn.k === 'get' && variables(expr.fn.of).length > 0;
    if (!isNamed && !acts) return result;
    if (this.#steps.length >= 4 * MOST_STEPS) return result;
    const bind = isNamed ? this.#nameFor(expr) : null;
    this.#steps.push({ bind, expr, wait: isPromise });
    return bind ? this.wrap(result, local(bind)) : result;
  }

  #note(observe, value) {
    const key = observe.k === 'get' ? observe.name : (observe.fn ?? observe.cls).name;
    const count = this.#counts.get(key) ?? 0;
    const steps = this.#needed(observe);
    if (count >= MOST_OF_ONE || this.programs.length >= MOST_PROGRAMS || steps.length > MOST_STEPS) return;
    this.#counts.set(key, count + 1);
    this.programs.push({ steps, observe, wait: typeof value?.then === 'function' });
  }

  /** The steps so far that make or change what an expr names. */
  #needed(observe) {
    const names = new Set(variables(observe));
    const kept = [];
    for (const step of this.#steps.toReversed()) {
      const uses = variables(step.expr);
      if (!names.has(step.bind) && !uses.some((name) => names.has(name))) continue;
      for (const name of uses) names.add(name);
      kept.unshift(step);
    }
    return kept;
  }

  #nameFor(expr) {
    const of = expr.k === 'new' ? expr.cls : expr.fn;
    const base = (of.name === 'default' || !of.name ? 'made' : of.name).replace(/\W/g, '') || 'made';
    const name = base[0].toLowerCase() + base.slice(1);
    const taken = new Set(this.#steps.map((s) => s.bind));
    const start = expr.k === 'new' ? name : taken.has('made') || name === 'made' ? 'made' : 'made';
    for (let n = 1; ; n++) {
      const candidate = n === 1 ? start : `${start}${n}`;
      if (!taken.has(candidate)) return candidate;
    }
  }

  #behind(value) {
    return isTelling(value) ? (this.#real.get(value) ?? value) : value;
  }

  #exprOf(value) {
    if (isTelling(value) && this.#exprs.has(value)) return this.#exprs.get(value);
    if (typeof value === 'function') {
      const text = Function.prototype.toString.call(value);
      if (text.length > LONGEST || /^class\b|\[native code\]/.test(text)) throw new Unreadable();
      return code(text);
    }
    // Records and lists by hand: a test may put an instance, or a callback, into them.
    if (Array.isArray(value)) {
      if (value.length > 40) throw new Unreadable();
      return list(Array.from(value, (v) => this.#exprOf(v)));
    }
    const isPlain = value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;
    if (!isPlain) return value === undefined ? lit(undefined) : describe(value);
    const entries = Object.entries(value);
    if (entries.length > 40) throw new Unreadable();
    return record(entries.map(([key, v]) => [key, this.#exprOf(v)]));
  }
}

/** Is there something on a value that can be called? */
function isTelling(value) {
  if (typeof value === 'function') return true;
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false;
  if (value instanceof Date || value instanceof RegExp || value instanceof Error) return false;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return !/^(Map|Set|\w*Array|Buffer|Promise)$/.test(prototype.constructor?.name);
  return Object.values(Object.getOwnPropertyDescriptors(value)).some((d) => typeof d.value === 'function');
}
