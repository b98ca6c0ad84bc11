/** Performs programs as a test would: evaluates exprs, step by step, and knows whose exception it was. */

const PATIENCE_MS = 200; // for a promise to settle

export const LATE = 'a promise that does not settle';

/** A run was stopped, or could not be performed as a test would perform it: nothing is known of it. */
export class Unusable extends Error {}

const compiled = new Map();

function functionOf(text) {
  if (!compiled.has(text)) compiled.set(text, new Function(`return (${text});`));
  return compiled.get(text)();
}

/** Evaluates exprs. `inCode` says whether what is thrown comes out of the code under test, or out of the test itself. */
export class Run {
  locals = new Map();
  inCode = false;
  lastArgs = [];

  constructor(namespaces) {
    this.namespaces = namespaces;
  }

  value(expr) {
    switch (expr.k) {
      case 'lit':
        return expr.v;
      case 'list':
        return expr.items.map((e) => this.value(e));
      case 'record':
        return Object.fromEntries(expr.entries.map(([key, e]) => [key, this.value(e)]));
      case 'code':
        return functionOf(expr.text);
      case 'typeof':
        return typeof this.value(expr.of);
      case 'spy': {
        const calls = this.value(expr.of);
        const fn = functionOf(expr.text);
        return (...args) => {
          calls.push(args);
          return fn(...args);
        };
      }
      case 'var':
        if (!this.locals.has(expr.name)) throw new Unusable(`nothing gives ${expr.name} its value`);
        return this.locals.get(expr.name);
      case 'global':
        return globalThis[expr.name];
      case 'export':
        return this.namespaces[expr.file]?.[expr.name];
      case 'get':
        return this.member(this.value(expr.of), expr.name);
      case 'spread': {
        const of = this.value(expr.of);
        return this.enter(() => (expr.as === 'list' ? [...of] : { ...of }), expr.as !== 'list' || isIterable(of));
      }
      case 'new': {
        const cls = this.value(expr.cls);
        const args = expr.args.map((e) => this.value(e));
        return this.enter(() => Reflect.construct(cls, args), typeof cls === 'function');
      }
      case 'call': {
        const self = expr.fn.k === 'get' ? this.value(expr.fn.of) : undefined;
        const fn = expr.fn.k === 'get' ? this.member(self, expr.fn.name) : this.value(expr.fn);
        const args = expr.args.map((e) => this.value(e));
        const result = this.enter(() => Reflect.apply(fn, self, args), typeof fn === 'function');
        this.lastArgs = args;
        return result;
      }
      default:
        throw new Unusable(`no such expr: ${expr.k}`);
    }
  }

  member(of, name) {
    return this.enter(() => of[name], of !== null && of !== undefined);
  }

  enter(act, possible) {
    if (!possible) throw new Unusable('the test itself would fail');
    this.inCode = true;
    const result = act();
    this.inCode = false;
    return result;
  }

  /** Yields what has to be awaited; returns the observed value. `at` is the step that runs, for who catches. */
  *perform(program) {
    for (this.at = 0; this.at < program.steps.length; this.at++) {
      const { bind, expr, wait } = program.steps[this.at];
      let value = this.value(expr);
      if (wait) value = yield* this.awaited(value);
      if (bind) this.locals.set(bind, value);
    }
    const value = this.value(program.observe);
    return program.wait ? yield* this.awaited(value) : value;
  }

  *awaited(value) {
    this.inCode = true;
    const settled = yield value;
    this.inCode = false;
    return settled;
  }
}

const isIterable = (v) => v !== null && v !== undefined && typeof v[Symbol.iterator] === 'function';
export const isThenable = (v) => v !== null && typeof v === 'object' && typeof v.then === 'function';

export async function settle(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Unusable(LATE)), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A list that the test itself made, such as a callback's calls, as it is now: what comes later, the test doesn't see. */
export function asSeen({ observe, wait }, value) {
  const isOwn = observe.k === 'var' && !wait && Array.isArray(value);
  return isOwn && Object.keys(value).length === value.length ? value.slice() : value;
}
