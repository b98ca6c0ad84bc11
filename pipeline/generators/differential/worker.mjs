/**
 * Runs programs on the original and on its mutants, in a process of its own. It decides nothing: it is told what to
 * run (a message), notes on descriptor 3 what it is about to run ("<program> -" on the original, "<program> +" on mutants,
 * where one mutant has to be known "<program> <mutant>"), and says what came of it (a message).
 */

import fs from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import { Loader } from './loader.mjs';
import { Unprintable, describe, isData, isPresentable } from './program.mjs';
import { NOTE } from './trace.mjs';
import { WORLDS, Exited, enter, install } from './world.mjs';

const MOST_HITS = 60_000; // visits to mutated places in one run of the original; more is taken for an endless loop
const MORE_HITS = 5; // times as many as the original, plus 1000: what a mutant may take
const PATIENCE_MS = 200; // for a promise to settle

const engine = (globalThis.__stryker__ ??= {});
engine.mutantCoverage = { static: {}, perTest: {} };
engine.currentTestId = 'run';

class Endless extends Error {}

/** A run was stopped, or could not be performed as a test would perform it: nothing is known of it. */
class Unusable extends Error {}

let hits = {}; // mutant id → visits, of the run that was last
let hitCount = 0;
let hitLimit = 0;
let work = 0; // visits in all runs of an order: what it cost, whatever the machine
const counting = {
  set: (target, id, count) => {
    if (++hitCount > hitLimit) throw new Endless();
    target[id] = count;
    return true;
  },
};

// --- evaluating -----------------------------------------------------------------------------------------------------

const compiled = new Map();

function functionOf(text) {
  if (!compiled.has(text)) compiled.set(text, new Function(`return (${text});`));
  return compiled.get(text)();
}

/** Evaluates exprs. `inCode` says whether what is thrown comes out of the code under test, or out of the test itself. */
class Run {
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
      case 'var':
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
const isThenable = (v) => v !== null && typeof v === 'object' && typeof v.then === 'function';

async function settle(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Unusable('a promise that does not settle')), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function arm(mutant, world, limit) {
  enter(world);
  hits = {};
  work += hitCount;
  hitCount = 0;
  hitLimit = limit;
  engine.mutantCoverage.perTest.run = new Proxy(hits, counting);
  engine.activeMutant = mutant;
  engine.hitCount = 0;
  engine.hitLimit = limit;
}

function disarm() {
  engine.activeMutant = undefined;
  engine.hitLimit = undefined;
}

/** One run: { value, args, hits } or { error, at, hits } or { unusable, endless }. */
async function perform(program, namespaces, mutant, world, limit) {
  arm(mutant, world, limit);
  const run = new Run(namespaces);
  try {
    const steps = run.perform(program);
    let next = steps.next();
    while (!next.done) {
      let settled;
      try {
        settled = isThenable(next.value) ? await settle(next.value) : next.value;
      } catch (error) {
        next = steps.throw(error);
        continue;
      }
      next = steps.next(settled);
    }
    return { value: next.value, args: run.lastArgs, hits: hitCount };
  } catch (error) {
    if (error instanceof Endless || /^Stryker: Hit count limit/.test(error?.message)) return { unusable: 'endless', endless: true };
    if (error instanceof Exited || error instanceof Unusable || error?.code === 'ERR_ACCESS_DENIED' || !run.inCode) return { unusable: String(error?.message) };
    return { error, at: run.at, hits: hitCount };
  } finally {
    disarm();
  }
}

// --- judging --------------------------------------------------------------------------------------------------------

const NATIVE = {
  TypeError: /is not (a|an|iterable|defined|extensible)|is not$|Cannot (read|set|convert|destructure|mix|delete|assign|redefine|use)|of (undefined|null)|not iterable|Reduce of empty|Invalid (Date|attempt)/,
  RangeError: /call stack|Invalid (array|string|time|count|date|typed)|toFixed|toString\(\) radix|Maximum|precision/,
  ReferenceError: /./,
  SyntaxError: /JSON|regular expression|BigInt|Unexpected (token|end)/,
  URIError: /malformed/,
};

/** What the original's run says, as a test would assert it; `hint` names a change that makes it say something. */
function judge(program, run) {
  if (run.unusable) return { kind: 'bad', why: run.unusable };
  if ('error' in run) {
    const { error } = run;
    if (!(error instanceof Error)) return { kind: 'bad', why: 'throws no Error' };
    if (run.at < program.steps.length) return { kind: 'hint', hint: 'cut', at: run.at };
    const { name, message } = error;
    if (typeof message !== 'string' || message.length > 300) return { kind: 'bad', why: 'a long message' };
    return { kind: 'throw', name, message, native: Boolean(NATIVE[error.constructor?.name]?.test(message)) };
  }
  const { value } = run;
  if (isThenable(value)) return { kind: 'hint', hint: 'wait' };
  try {
    const expr = describe(value);
    if (isDeepStrictEqual(value, new Run({}).value(expr))) return { kind: 'value', expr };
  } catch (error) {
    if (!(error instanceof Unprintable)) throw error;
  }
  if (program.observe.k === 'spread' || value === null || typeof value !== 'object') return { kind: 'bad', why: 'no literal says it' };
  if (value instanceof Error) return { kind: 'hint', hint: 'message' };
  if (typeof value[Symbol.iterator] === 'function') return { kind: 'hint', hint: 'list' };
  return Object.keys(value).length ? { kind: 'hint', hint: 'record' } : { kind: 'bad', why: 'no literal says it' };
}

/** Would the test that asserts `outcome` fail on this run, by an assertion or an exception out of the code under test? */
function fails(outcome, run) {
  if (run.unusable) return false;
  if (outcome.kind === 'throw') {
    const { error } = run;
    return !('error' in run) || error?.name !== outcome.name || error?.message !== outcome.message;
  }
  return 'error' in run || !isDeepStrictEqual(run.value, new Run({}).value(outcome.expr));
}

const asserts = (outcome) => outcome.kind === 'value' || outcome.kind === 'throw';

/** The data arguments of the last call, where a run left them changed in another way than the original did. */
function changedArgument(program, original, mutated) {
  if (program.observe.k !== 'call' || !('value' in mutated) || !original.args) return null;
  const at = program.observe.args.findIndex(
    (e, i) => isData(e) && e.k !== 'lit' && e.k !== 'code' && !isDeepStrictEqual(original.args[i], mutated.args[i]),
  );
  return at < 0 ? null : at;
}

// --- the orders -----------------------------------------------------------------------------------------------------

let loader;
let tracing; // a loader of the sources that note what they compare, and its instance
let tracedShared;
let shared; // the instance that all runs use where modules keep no state
let stateful = false;
let statics = new Set(); // ids of mutants that act while a module loads
const staticInstances = new Map();

function note(text) {
  fs.writeSync(3, `${text}\n`);
}

async function load(mutant) {
  arm(mutant, WORLDS[0], MOST_HITS);
  try {
    return await loader.instance();
  } finally {
    disarm();
  }
}

/** The modules for one run with `mutant`; null where they don't load with it. */
async function namespacesFor(mutant, fresh) {
  try {
    if (fresh || stateful) return await load(statics.has(mutant) ? mutant : undefined);
    if (!statics.has(mutant)) return (shared ??= await load());
    if (!staticInstances.has(mutant)) staticInstances.set(mutant, await load(mutant).catch(() => null));
    return staticInstances.get(mutant);
  } catch (error) {
    if (mutant === undefined) throw error;
    return null;
  }
}

async function runOn(program, mutant, { world = WORLDS[0], fresh = false, than } = {}) {
  const namespaces = await namespacesFor(mutant, fresh);
  if (!namespaces) return { unusable: 'the module does not load' };
  return perform(program, namespaces, mutant, world, than ? Math.min(than.hits * MORE_HITS + 1000, 2 * MOST_HITS) : MOST_HITS);
}

async function isStable(program, outcome, fresh) {
  for (const world of WORLDS) {
    if (fails(outcome, await runOn(program, undefined, { world, fresh }))) return false;
  }
  return true;
}

async function start({ root, files, texts, staticIds, keepsState }) {
  loader = new Loader(root, files);
  tracing = new Loader(root, files, texts);
  statics = new Set(staticIds);
  stateful = keepsState;
  try {
    const namespaces = (shared = await load());
    const shape = (value) => (typeof value === 'function' ? (/^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : 'function') : 'value');
    const exports = Object.entries(namespaces).map(([file, ns]) => [file, Object.fromEntries(Object.keys(ns).map((name) => [name, shape(ns[name])]))]);
    return { exports: Object.fromEntries(exports) };
  } catch (error) {
    return { failed: `${error?.name}: ${error?.message}` };
  }
}

/** A short name of the way a run took: what it visited, and whether once, twice or often. */
function wayOf(visits) {
  let hash = 2166136261;
  for (const [id, count] of Object.entries(visits)) {
    hash = Math.imul(hash ^ Number(id), 16777619);
    hash = Math.imul(hash ^ Math.min(count, 3), 16777619);
  }
  return hash;
}

/** Each program on the original, then on each mutant of `alive` that it reaches; its result is a message of its own. */
async function explore({ programs, alive, avoid, spared, careful }) {
  const wanted = new Set(alive);
  const skip = new Set(avoid);
  for (const [index, program] of programs.entries()) {
    note(`${index} -`);
    const original = await runOn(program);
    const outcome = judge(program, original);
    const reached = Object.keys(hits).filter((id) => wanted.has(id));
    const result = { outcome, reached, way: wayOf(hits), kills: [], endless: [], watch: null, unstable: false, work: 0 };
    work = hitCount;
    if (asserts(outcome)) {
      note(`${index} +`);
      for (const id of new Set([...reached, ...alive.filter((id) => statics.has(id))])) {
        if (skip.has(id) || (index === 0 && spared.includes(id))) continue;
        if (careful) note(`${index} ${id}`);
        const mutated = await runOn(program, id, { than: original });
        if (mutated.endless) result.endless.push(id);
        if (fails(outcome, mutated)) result.kills.push(id);
        else result.watch ??= changedArgument(program, original, mutated);
      }
      if (result.kills.length && !(await isStable(program, outcome, false))) result.unstable = true;
      result.work = work + hitCount;
    }
    tell({ part: result });
  }
  return {};
}

/** The first of `candidates` that is stable and fails for all of `must`; index -1 where none is. */
async function choose({ candidates, must, avoid }) {
  for (const [index, program] of candidates.entries()) {
    if (avoid.includes(`${index} +`)) continue;
    note(`${index} +`);
    const original = await runOn(program);
    const outcome = judge(program, original);
    if (!isPresentable(outcome)) continue;
    let all = true;
    for (const id of must) all &&= fails(outcome, await runOn(program, id, { than: original }));
    if (all && (await isStable(program, outcome, false))) return { index, outcome };
  }
  return { index: -1 };
}

/** In modules loaded for each run: what the original gives in every world, and which of `ids` fail in each of them. */
async function confirm({ program, ids, avoid }) {
  if (avoid.includes('0 -')) return { outcome: null, kills: [] };
  note('0 -');
  const original = await runOn(program, undefined, { fresh: true });
  const outcome = judge(program, original);
  if (!asserts(outcome) || !(await isStable(program, outcome, true))) return { outcome: null, kills: [] };
  const kills = [];
  for (const id of ids) {
    if (avoid.includes(`0 ${id}`)) continue;
    note(`0 ${id}`);
    let always = true;
    for (const world of WORLDS) always &&= fails(outcome, await runOn(program, id, { world, fresh: true, than: original }));
    if (always) kills.push(id);
  }
  return { outcome, kills };
}

const MOST_PAIRS = 60;
let pairs = new Map();

globalThis[NOTE] = (operator, a, b) => {
  const telling = a !== b && typeof a === typeof b && (typeof a === 'number' || typeof a === 'string');
  if (telling && pairs.size < MOST_PAIRS && String(a).length + String(b).length < 120) pairs.set(`${a} ${b}`, [a, b]);
  return compare(operator, a, b);
};

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

/** The pairs of values that a run of the original compares and finds different. */
async function trace({ program, avoid }) {
  if (avoid.includes('0 -')) return { pairs: [] };
  note('0 -');
  arm(undefined, WORLDS[0], MOST_HITS);
  if (stateful || !tracedShared) tracedShared = await tracing.instance();
  pairs = new Map();
  await perform(program, tracedShared, undefined, WORLDS[0], MOST_HITS);
  return { pairs: [...pairs.values()] };
}

const orders = { start, explore, choose, confirm, trace };

const tell = process.send.bind(process);
install();
process.on('message', async ({ order, ...rest }) => {
  try {
    tell({ reply: await orders[order](rest) });
  } catch (error) {
    tell({ reply: { failed: String(error?.stack ?? error) } });
  }
});
