// One run of test files, whichever runner does it: what is asked, the guard around the tests, what each of them did.
//
// request: { root, runner, files: [path] | null, out, mutant: "id" | "" | null, shuffle: number | null,
// only: [title] | null, watched, options, scratch; hitLimit, bail, unlimited (where Stryker asks: its limit for a mutant
// that loops, whether the first failure is enough, and no time limit of the runner's own) }
// answer (in the file `out`): { tests: [{ file, title, state, kind, message, left, seconds, outside }], files, reached:
// { id: [title] }, error, options, loaded, loads }. The project's own configuration of the runner holds, but for which files
// are run; `options` is that configuration as an earlier run found it, where reading it takes longer than to run a test.
// While a test runs, its title is in the file `out`.running: it is the one that has ended a process without an answer.
// `watched`: `left` says what each test left changed or open (guard.mjs). `loaded`: files, where only the runner knows
// them. `loads`: which of several files loads what (loads.mjs), where it is recorded what they load.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  hideSwitch, makeSwitch, otherWorld, refuseCodeFromStrings, sameRandom, Watch,
} from './guard.mjs'; // prettier-ignore

const HIT_LIMIT = 200_000; // runs of one mutant's code; a loop that it makes endless ends here instead of at a time limit
const { exit } = process; // tests may replace these
const write = fs.writeFileSync;
const writeAt = fs.writeSync;
const { ftruncateSync } = fs;

export class Session {
  constructor(request) {
    Object.assign(this, { hitLimit: HIT_LIMIT, ...request });
    this.require = createRequire(path.join(this.root, 'package.json'));
    this.answer = { tests: [], files: [], reached: {}, error: null };
    this.stryker = makeSwitch({ activeMutant: this.mutant ?? '', hitCount: 0, hitLimit: this.hitLimit });
    this.isTestFile = (file) => this.answer.files.includes(this.relative(toPath(file)));
    this.current = null; // title of the test that runs
    this.watch = null;
  }

  relative(file) {
    return path.relative(this.root, file).split(path.sep).join('/');
  }

  // Before anything of the project is loaded.
  async watchLoads() {
    if (!this.record || !(this.files?.length > 1)) return;
    const { Loads } = await import('./loads.mjs'); // of hundreds of processes, one asks for it
    this.watchedLoads = new Loads(this.root);
  }

  // The files that are run, by their paths here: known before any of them is loaded.
  loads(files) {
    this.answer.files = files.map((file) => this.relative(path.resolve(this.root, file)));
    if (this.unlimited) write(`${this.out}.begun`, '');
  }

  // Before anything of the project is loaded. world: the globals that the code will see, if they are not these; with
  // its own kinds of function and its own way to define a property.
  guard(world = globalThis, { kinds, define } = {}) {
    hideSwitch(this.stryker, this.isTestFile, world, define);
    if (this.watched) refuseCodeFromStrings(this.isTestFile, world, kinds);
    // With a mutant on, what a test makes of chance is no kill: it gets the same numbers as without one.
    if (this.mutant !== null) sameRandom(random(1), world);
    else if (this.shuffle !== null) otherWorld(this.shuffle, random(this.shuffle), world);
  }

  // After the test files have been loaded, before a test runs. library: [name, object] of what tests assert with.
  begin(library, world = globalThis) {
    if (this.watched) this.watch = new Watch(library, world);
    this.running ??= fs.openSync(`${this.out}.running`, 'w');
  }

  started(title) {
    this.looked();
    this.current = title;
    this.stryker.mutantCoverage.perTest[(this.stryker.currentTestId = title)] ??= Object.create(null);
    const bytes = Buffer.from(title);
    ftruncateSync(this.running);
    writeAt(this.running, bytes, 0, bytes.length, 0);
  }

  // Hooks run, and it cannot be told whose: what they reach, any test may.
  between() {
    this.stryker.mutantCoverage.perTest[(this.stryker.currentTestId = BETWEEN)] ??= Object.create(null);
  }

  looked() {
    if (this.current !== null) this.watch?.look(this.current);
  }

  // how: { state: passed | failed | skipped, error, isOther: it failed by a hook or a time limit, took: milliseconds }
  tested(file, title, { state, error, isOther = false, took = 0 }) {
    const result = { file: file && this.relative(file), title, state, kind: '', message: '', left: '', seconds: took / 1000 };
    if (state === 'failed') Object.assign(result, this.failure(error, isOther), { outside: isOther });
    this.answer.tests.push(result);
  }

  failure(error, isOther) {
    const message = String(error?.message ?? error).slice(0, 500);
    if (isOther) return { kind: 'other', message };
    if (isAssertion(error)) return { kind: 'assertion', message };
    return { kind: this.#thrownByCodeUnderTest(error) ? 'exception' : 'other', message };
  }

  // Thrown where? The first frame of the project's own says: a test file, or the code that it tests.
  #thrownByCodeUnderTest(error) {
    const frames = String(error?.stack ?? '')
      .split('\n')
      .slice(1);
    for (const frame of frames) {
      const url = /(file:\/\/[^\s)]+?|\/[^\s()]+?):\d+:\d+\)?$/.exec(frame)?.[1];
      if (!url) continue;
      const file = toPath(url);
      if (!file.startsWith(this.root + path.sep) || file.includes(`${path.sep}node_modules${path.sep}`)) continue;
      return !this.isTestFile(file);
    }
    return false;
  }

  // After the last test of those that `begin` was called for, and its hooks: what each left behind.
  async left() {
    this.looked();
    this.current = null;
    return [...((await this.watch?.report()) ?? [])];
  }

  // After the last test of all: what each left behind, what each reached.
  async ended() {
    for (const [test, left] of await this.left()) this.leaves(test, left);
    this.reaches(this.stryker.mutantCoverage);
    if (this.mutant && this.stryker.hitCount > this.hitLimit) this.answer.looped = true;
  }

  leaves(title, left) {
    for (const result of this.answer.tests) if (result.title === title) result.left ||= left;
  }

  reaches({ perTest, static: loading }) {
    const { reached, tests } = this.answer;
    const any = { ...loading, ...perTest[BETWEEN] };
    for (const id of Object.keys(any)) reached[id] = tests.map(({ title }) => title);
    for (const [title, ids] of Object.entries(perTest)) {
      for (const id of Object.keys(ids)) if (!any[id]) (reached[id] ??= []).push(title);
    }
  }

  finish(error) {
    if (error) this.answer.error = String(error?.stack ?? error).slice(0, 4000);
    if (this.watchedLoads) this.answer.loads = this.watchedLoads.told(this.answer.files);
    write(this.out, JSON.stringify(this.answer));
    exit(0);
  }
}

const BETWEEN = '\0between';

export function isAssertion(error) {
  // matcherResult: of jest's expect, whose errors have no name of their own.
  return error?.code === 'ERR_ASSERTION' || error?.name === 'AssertionError' || error?.matcherResult !== undefined;
}

function toPath(file) {
  return file.startsWith('file:') ? fileURLToPath(file) : file;
}

// list, shuffled where it stands. next: as `random` makes them.
export function shuffled(list, next) {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

export function random(seed) {
  // mulberry32, https://github.com/cprosche/mulberry32
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// The file that `import` of a package takes, where only its place is known: `require` may take another, or none.
// require: of the place; entry: as the package's exports name it.
export function entryOf(require, name, entry = '.') {
  const manifest = require.resolve(`${name}/package.json`);
  const { exports = {}, main } = require(manifest);
  let file = typeof exports === 'string' ? exports : exports[entry];
  while (file && typeof file === 'object') file = file.import ?? file.node ?? file.default;
  return pathToFileURL(path.join(path.dirname(manifest), file ?? main ?? 'index.js')).href;
}
