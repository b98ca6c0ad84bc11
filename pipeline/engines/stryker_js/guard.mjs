// What generated tests must not see, and what they must not leave behind. Loaded before anything of the project is.
import fs from 'node:fs';
import inspector from 'node:inspector';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import v8 from 'node:v8';

const PER_SEED = 34_321_000_000; // ms, 397 days and some hours: seasons, weekdays and time zones' changes differ
const DRAIN = 1000; // ms that timers still open may take to run out by themselves
const OPEN = /^(Timeout|TCP|UDP|Process|Worker|FSEvent|StatWatcher)/;
const HERE = fileURLToPath(import.meta.url); // some loaders name a module so
const { captureStackTrace } = Error;
const now = performance.now.bind(performance);
const wait = setTimeout;
const pause = (ms) => new Promise((done) => wait(done, ms));

// Stryker's instrumented code asks `globalThis.__stryker__` which mutant is on, once a module. A test that could see it
// would only have to fail whenever there is one. So it answers to that code alone, and nothing that the code does with
// the answer can be overheard: no property of it is looked up on Object.prototype, and `apply` is the true one.
export function makeSwitch(stryker) {
  const bare = (properties) => Object.assign(Object.create(null), properties);
  return bare({ ...stryker, currentTestId: '', mutantCoverage: bare({ static: bare(), perTest: bare() }) });
}

// world: the globals that the code sees; a runner may give each test file its own. define: that world's defineProperty.
export function hideSwitch(state, isTestFile, world = globalThis, define = Object.defineProperty) {
  const asksForIt = ({ file, name }) => /^stryNS_/.test(name) && !isTestFile(file);
  define(world, '__stryker__', { get: () => (caller(asksForIt) ? state : undefined), set() {} });
  const { apply } = world.Function.prototype;
  Object.defineProperty(world.Function.prototype, 'apply', {
    configurable: false,
    get: () => apply,
    set(value) {
      // Of Function.prototype itself, which this is not configurable on, that throws.
      Object.defineProperty(this, 'apply', { value, writable: true, enumerable: true, configurable: true });
    },
  });
}

const KINDS = [function () {}, async function () {}, function* () {}, async function* () {}];

// Code from strings is code that nobody has read: a test may not make any. The project's own code may.
export function refuseCodeFromStrings(isTestFile, world = globalThis, kinds = KINDS) {
  const mayMakeCode = ({ file }) => !isTestFile(file);
  for (const { prototype } of kinds.map((kind) => ({ prototype: Object.getPrototypeOf(kind) }))) {
    const real = prototype.constructor;
    const checked = (make) => {
      if (!caller(mayMakeCode)) throw new EvalError('a test may not make code from strings');
      return make();
    };
    const value = new Proxy(real, {
      apply: (_, self, given) => checked(() => Reflect.apply(real, self, given)),
      construct: (_, given, target) => checked(() => Reflect.construct(real, given, target)),
    });
    Object.defineProperty(prototype, 'constructor', { value });
    if (real === world.Function) world.Function = value;
  }
}

// Tests are made when their file is loaded, not while others run.
export function refuseTestsInTests(world = globalThis) {
  for (const name of INTERFACE) if (name in world) world[name] = refused;
}

export function refused() {
  throw new Error('a test may not make another');
}

// Whether `fits` the nearest function on the stack that is in a file of somebody's; false where nobody can be seen.
function caller(fits) {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 20;
    Error.prepareStackTrace = (_, sites) => sites;
    const holder = {};
    captureStackTrace(holder, caller);
    for (const site of holder.stack) {
      const file = site.getFileName();
      if (!file || file.startsWith('node:') || file === import.meta.url || file === HERE) continue;
      return fits({ file, name: site.getFunctionName() ?? '' });
    }
    return false;
  } catch {
    return false; // somebody has made the stack unreadable
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

// A debugger, a heap snapshot or the request on standard input would tell the same.
export function shutWindows({ hasInput = true } = {}) {
  const shut = () => {
    throw new Error('not for tests');
  };
  inspector.open = inspector.url = shut;
  inspector.Session.prototype.connect = inspector.Session.prototype.connectToMainThread = shut;
  for (const name of ['getHeapSnapshot', 'writeHeapSnapshot', 'setHeapSnapshotNearHeapLimit', 'queryObjects']) {
    if (v8[name]) v8[name] = shut;
  }
  module.syncBuiltinESMExports();
  if (!hasInput) return; // of a thread it is the process's, and shut already
  fs.closeSync(0);
  fs.openSync('/dev/null', 'r'); // takes its number
}

// Another day and other random numbers for each seed but the first: what a test pins of them does not hold in all.
export function otherWorld(seed, next, world = globalThis) {
  if (seed < 1) return;
  const { random } = world.Math;
  const shift = (seed % 7) * PER_SEED;
  const RealDate = world.Date;
  const moment = () => RealDate.now() + shift;
  const Shifted = new Proxy(RealDate, {
    construct: (_, given, target) => Reflect.construct(RealDate, given.length > 0 ? given : [moment()], target),
    apply: () => new Shifted().toString(),
    get: (target, name, receiver) => (name === 'now' ? moment : Reflect.get(target, name, receiver)),
  });
  world.Date = RealDate.prototype.constructor = Shifted;
  const low = () => next() / 1000;
  world.Math.random = [random, low, () => 1 - Number.EPSILON - low()][seed % 3];
}

export function sameRandom(next, world = globalThis) {
  world.Math.random = next;
}

// What tests share, and what each of them left changed there. It is put back, so that the next are judged as they are.
export class Watch {
  #shared; // { name, object, keys: those to look at, or null for all, before: Map of key -> its property }
  #process; // as the tests see it
  #environment;
  #cwd;
  #listeners;
  #openAtStart = open().length;
  #openNow = this.#openAtStart;
  #left = new Map(); // test -> what it left behind
  #openers = new Map(); // test -> what was open after it and not before

  // library: [name, object] of what the tests assert with and run in. world: the globals that they see
  constructor(library, world = globalThis) {
    const all = [...shared(world), ...library.map(([name, object]) => ({ name, object, keys: null }))];
    this.#shared = all.map((each) => ({ ...each, before: properties(each) }));
    this.#process = world.process;
    this.#environment = { ...world.process.env };
    this.#cwd = world.process.cwd();
    this.#listeners = new Map(LISTENED.map((event) => [event, world.process.rawListeners(event)]));
  }

  rejected(test) {
    this.#left.set(test, 'it leaves a promise that is rejected, and nobody looks at it');
  }

  // After each test and its hooks.
  look(test) {
    const changed = [...this.#changes()];
    if (changed.length > 0) this.#left.set(test, `it leaves ${changed.slice(0, 3).join(', ')} changed`);
    const now = open();
    if (now.length > this.#openNow) this.#openers.set(test, now.at(-1));
    this.#openNow = now.length;
  }

  // After all of them: test -> what it left behind.
  async report() {
    const until = now() + DRAIN;
    while (this.#openers.size > 0 && open().length > this.#openAtStart && now() < until) await pause(20);
    if (open().length > this.#openAtStart) {
      for (const [test, kind] of this.#openers) {
        if (!this.#left.has(test)) this.#left.set(test, `it leaves a ${kind} that keeps the process from ending`);
      }
    }
    return this.#left;
  }

  *#changes() {
    for (const each of this.#shared) {
      if (unchanged(each)) continue;
      const is = properties(each);
      for (const key of new Set([...each.before.keys(), ...is.keys()])) {
        const [a, b] = [each.before.get(key), is.get(key)];
        if (a === b || (a && b && Object.is(a.value, b.value) && a.get === b.get && a.set === b.set)) continue;
        yield `${each.name}.${String(key)}`;
        if (a) Reflect.defineProperty(each.object, key, a);
        else Reflect.deleteProperty(each.object, key);
      }
    }
    const process = this.#process;
    const { env } = process;
    for (const name of new Set([...Object.keys(env), ...Object.keys(this.#environment)])) {
      if (env[name] === this.#environment[name]) continue;
      yield `process.env.${name}`;
      if (name in this.#environment) env[name] = this.#environment[name];
      else delete env[name];
    }
    if (process.cwd() !== this.#cwd) {
      yield 'the working directory';
      process.chdir(this.#cwd);
    }
    // What listens to the end of a process may make an exit code of 0 of whatever failed there.
    for (const event of LISTENED) {
      for (const listener of process.rawListeners(event)) {
        if (this.#listeners.get(event).includes(listener)) continue;
        yield `what listens to process.${event}`;
        process.removeListener(event, listener);
      }
    }
  }
}

const BUILT_IN = ['Object', 'Function', 'Array', 'String', 'Number', 'Boolean', 'BigInt', 'Symbol', 'Promise', 'RegExp',
  'Map', 'Set', 'WeakMap', 'WeakSet', 'Date', 'Error', 'TypeError', 'RangeError', 'ArrayBuffer', 'Uint8Array', 'URL',
  'Math', 'JSON', 'Reflect', 'Intl', 'console']; // prettier-ignore
const INTERFACE = ['it', 'test', 'specify', 'describe', 'context', 'suite', 'xit', 'xdescribe', 'before', 'after',
  'beforeEach', 'afterEach']; // prettier-ignore
const GLOBAL = [...BUILT_IN, ...INTERFACE, 'Buffer', 'process', 'setTimeout', 'setInterval', 'setImmediate',
  'clearTimeout', 'queueMicrotask']; // prettier-ignore
const LISTENED = ['beforeExit', 'exit'];
const PROCESS = ['exit', 'kill', 'abort', 'emit', 'on', 'once', 'nextTick', 'hrtime', 'cwd', 'platform'];

function* shared(world) {
  yield { name: 'globalThis', object: world, keys: GLOBAL }; // others of it are made when first looked at
  yield { name: 'process', object: world.process, keys: PROCESS };
  for (const name of BUILT_IN) {
    const object = world[name];
    if (!object) continue; // a runner's own world may lack some
    yield { name, object, keys: null };
    if (object.prototype) yield { name: `${name}.prototype`, object: object.prototype, keys: null };
  }
}

const LIMIT = 'stackTraceLimit';
const isError = (object) => object.name === 'Error' && Object.hasOwn(object, LIMIT);

function properties({ object, keys }) {
  const found = new Map();
  for (const key of keys ?? Reflect.ownKeys(object)) {
    const property = Object.getOwnPropertyDescriptor(object, key);
    // Written by the machine: RegExp.$1 and its like are accessors, this one is not.
    if (property && !(key === LIMIT && isError(object))) found.set(key, property);
  }
  return found;
}

// Told without making a description of each property, which takes longer than most tests.
function unchanged({ object, keys, before }) {
  if (keys || Reflect.ownKeys(object).length !== before.size + isError(object)) return false;
  for (const [key, { value, get, set }] of before) {
    if (!get && !set) {
      if (!Object.is(object[key], value)) return false;
    } else {
      const is = Object.getOwnPropertyDescriptor(object, key);
      if (is?.get !== get || is?.set !== set) return false;
    }
  }
  return true;
}

function open() {
  return process.getActiveResourcesInfo().filter((kind) => OPEN.test(kind));
}
