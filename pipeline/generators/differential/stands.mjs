/**
 * Stand-ins for what test files import, so that their bodies run here whatever their runner: cases are run one after
 * another, assertions ask nothing, and functions given to assertions are called, as `throws` would.
 */

const PATIENCE_MS = 60; // for one case
const CASE = /^(it|test|specify)$/;
const GROUP = /^(describe|suite|context)$/;
const BEFORE = /^(before|beforeEach|beforeAll|setup|suiteSetup)$/;
const AFTER = /^(after|afterEach|afterAll|teardown|suiteTeardown)$/;

/** What answers anything: every member is itself, every call calls the functions that it is given. */
export function anything(special = {}) {
  const self = new Proxy(function any() {}, {
    get: (_, key) =>
      Object.hasOwn(special, key)
        ? special[key]
        : key === Symbol.toPrimitive
          ? () => ''
          : key === Symbol.iterator
            ? function* none() {}
            : key === 'then' || typeof key === 'symbol'
              ? undefined
              : self,
    set: () => true,
    has: () => true,
    apply: (_, __, args) => {
      for (const fn of args.filter((a) => typeof a === 'function')) {
        try {
          Promise.resolve(fn()).catch(() => {});
        } catch {
          // a test that it throws
        }
      }
      return self;
    },
    construct: () => self,
  });
  return self;
}

export class Cases {
  #queue = [];
  #hooks = [];

  /** onCase: told as each case begins. */
  constructor(onCase) {
    this.onCase = onCase;
    this.t = anything({ test: this.#runner('test'), it: this.#runner('it') });
  }

  /** A stand-in for the package that is imported under a specifier; names: those that are imported from it. */
  package(specifier, names) {
    const one = (name) => this.named(name) ?? anything();
    const whole = /assert|expect|chai|should|sinon/.test(specifier)
      ? anything()
      : Object.assign(this.#runner('test'), { default: undefined });
    if (specifier === 'uvu') return { default: whole, test: this.#runner('test'), suite: () => this.#runner('test') };
    const given = Object.fromEntries(names.map((name) => [name, one(name)]));
    return { ...given, default: whole };
  }

  /** The function that a runner knows by a name; undefined where none does. */
  named(name) {
    if ([CASE, GROUP, BEFORE, AFTER].some((kind) => kind.test(name))) return this.#runner(name);
    return /^(expect|assert|should|vi|jest)$/.test(name) ? anything() : undefined;
  }

  #runner(kind) {
    const run = (...given) => {
      const at = given.findIndex((g) => typeof g === 'function');
      if (at < 0) return undefined;
      const [fn, args] = [given[at], given.slice(at + 1)];
      if (GROUP.test(kind)) {
        const outer = this.#hooks;
        this.#hooks = [...outer];
        try {
          fn(this.t);
        } catch {
          // the rest of a group that cannot be read is passed over
        }
        this.#hooks = outer;
      } else if (BEFORE.test(kind)) this.#hooks.push(fn);
      else if (CASE.test(kind)) this.#queue.push({ hooks: this.#hooks, run: () => fn(this.t, ...args) });
      return undefined;
    };
    const each = (rows) => (title, fn) => {
      if (Array.isArray(rows) && typeof fn === 'function')
        for (const row of rows) run(title, () => fn(...(Array.isArray(row) ? row : [row])));
    };
    const also = (name) => (name === 'each' ? each : this.named(name));
    const specials = { each, run: () => {}, skip: () => {}, todo: () => {}, only: run, serial: run, failing: run };
    return new Proxy(run, {
      get: (_, key) => (key in specials ? specials[key] : (also(String(key)) ?? Reflect.get(run, key) ?? run)),
    });
  }

  async runAll() {
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      this.onCase();
      try {
        for (const hook of next.hooks) await within(hook(this.t));
        await within(next.run());
      } catch {
        // what a case has done so far is known
      }
    }
  }
}

/** The value, or nothing where it takes too long. */
function within(value) {
  if (typeof value?.then !== 'function') return value;
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, PATIENCE_MS)));
  return Promise.race([value, late]).finally(() => clearTimeout(timer));
}

export const GLOBALS = [
  ...['describe', 'suite', 'context', 'it', 'test', 'specify', 'before', 'beforeEach', 'beforeAll', 'setup'],
  ...['after', 'afterEach', 'afterAll', 'teardown', 'expect', 'vi', 'jest'],
];
