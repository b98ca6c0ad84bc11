// Runs mocha test files once, in this process, and writes what each test did: request on standard input, both as JSON.
//
// request: { root, files: [path] | null, out, mutant: "id" | "" | null, shuffle: number | null, only: [title] | null,
// watched, options }
// answer (in the file `out`): { tests: [{ file, title, state, kind, message, left }], files, reached: { id: [title] },
// error, options }. The project's own mocha configuration holds, but for which files are run; `options` is that
// configuration as an earlier run found it: mocha takes longer to read it than to run a test. While a test runs, its
// title is in the file `out`.running: it is the one that has ended a process without an answer. `watched`: `left` says
// what each test left changed or open (guard.mjs).
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  hideSwitch, otherWorld, refuseCodeFromStrings, refuseTestsInTests, sameRandom, shutWindows, Watch,
} from './guard.mjs'; // prettier-ignore

const HIT_LIMIT = 200_000; // runs of one mutant's code; a loop that it makes endless ends here instead of at a time limit

const { root, files, out, mutant, shuffle, only, watched, options: known } = JSON.parse(fs.readFileSync(0, 'utf8'));
const { exit } = process; // tests may replace these
const write = fs.writeFileSync;
const writeAt = fs.writeSync;
const answer = { tests: [], files: [], reached: {}, error: null };
const relative = (file) => path.relative(root, file).split(path.sep).join('/');

function finish(error) {
  if (error) answer.error = String(error?.stack ?? error).slice(0, 4000);
  write(out, JSON.stringify(answer));
  exit(0);
}

shutWindows();
const stryker = hideSwitch({ activeMutant: mutant ?? '', hitCount: 0, hitLimit: HIT_LIMIT }, isTestFile);
if (watched) refuseCodeFromStrings(isTestFile);
// With a mutant on, what a test makes of chance is no kill: it gets the same numbers as without one.
if (mutant !== null) sameRandom(random(1));
else if (shuffle !== null) otherWorld(shuffle, random(shuffle));

try {
  const require = createRequire(path.join(root, 'package.json'));
  const mochaRoot = path.dirname(require.resolve('mocha/package.json'));
  const { default: Mocha } = await import(pathToFileURL(require.resolve('mocha')).href);
  const fromMocha = (file) => require(path.join(mochaRoot, 'lib/cli', file));
  answer.options = known ?? (fromMocha('options.js').loadOptions([]) || {});
  const { ignore = [], extension = [], file = [], require: required = [], ...options } = answer.options;
  const toLoad = [...file, ...(files ?? [])].map((f) => path.resolve(f));
  if (files === null) {
    const collectFiles = fromMocha('collect-files.js');
    const spec = options.spec?.length ? [options.spec].flat() : ['./test'];
    toLoad.push(...collectFiles({ ignore, extension, file: [], spec, recursive: options.recursive, sort: true }).files);
  }
  const modules = [required].flat();
  const plugins = modules.length > 0 ? await fromMocha('run-helpers.js').handleRequires(modules) : {};
  const mocha = new Mocha({ ui: options.ui, timeout: options.timeout, rootHooks: plugins.rootHooks, reporter: class {} });
  for (const test of toLoad) mocha.addFile(test);
  if (only !== null) mocha.grep(new RegExp(`^(${only.map((title) => title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})$`));
  answer.files = toLoad.map(relative);
  await mocha.loadFilesAsync();
  if (shuffle !== null) shuffleSuite(mocha.suite, random(shuffle));

  if (watched) refuseTestsInTests();
  const watch = watched ? new Watch(library(require('node:assert'), Mocha)) : null;
  const running = fs.openSync(`${out}.running`, 'w');
  let current = null;
  const tested = () => current && watch?.look(current);
  if (watch) process.on('unhandledRejection', () => watch.rejected(current)); // mocha passes over it
  // The same in every run, so that no test can tell by it which run it is in.
  const runner = mocha.run(async () => {
    tested();
    for (const [test, left] of (await watch?.report()) ?? []) {
      for (const result of answer.tests) if (result.title === test) result.left = left;
    }
    const { perTest, static: loading } = stryker.mutantCoverage;
    for (const id of Object.keys(loading)) answer.reached[id] = answer.tests.map(({ title }) => title);
    for (const [title, ids] of Object.entries(perTest)) {
      for (const id of Object.keys(ids)) if (!loading[id]) (answer.reached[id] ??= []).push(title);
    }
    if (mutant && stryker.hitCount > HIT_LIMIT) answer.looped = true;
    finish();
  });
  runner.on('test', (test) => {
    tested();
    current = test.fullTitle();
    stryker.mutantCoverage.perTest[(stryker.currentTestId = current)] ??= Object.create(null);
    const title = Buffer.from(current);
    fs.ftruncateSync(running);
    writeAt(running, title, 0, title.length, 0);
  });
  runner.on('pass', (test) => answer.tests.push(described(test, 'passed')));
  runner.on('pending', (test) => answer.tests.push(described(test, 'skipped')));
  runner.on('fail', (test, error) => answer.tests.push({ ...described(test, 'failed'), ...failure(test, error) }));
} catch (error) {
  finish(error ?? 'the test files could not be loaded');
}
process.on('uncaughtException', () => {}); // mocha makes it the running test's failure

function described(test, state) {
  const { file = '' } = test;
  return { file: file && relative(file), title: test.fullTitle(), state, kind: '', message: '', left: '' };
}

function failure(test, error) {
  const message = String(error?.message ?? error).slice(0, 500);
  if (test.type === 'hook' || error?.code === 'ERR_MOCHA_TIMEOUT') return { kind: 'other', message };
  if (error?.code === 'ERR_ASSERTION' || error?.name === 'AssertionError') return { kind: 'assertion', message };
  return { kind: thrownByCodeUnderTest(error) ? 'exception' : 'other', message };
}

// Thrown where? The first frame of the project's own says: a test file, or the code that it tests.
function thrownByCodeUnderTest(error) {
  const frames = String(error?.stack ?? '').split('\n').slice(1);
  for (const frame of frames) {
    const url = /(file:\/\/[^\s)]+?|\/[^\s()]+?):\d+:\d+\)?$/.exec(frame)?.[1];
    if (!url) continue;
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    if (!file.startsWith(root + path.sep) || file.includes(`${path.sep}node_modules${path.sep}`)) continue;
    return !isTestFile(file);
  }
  return false;
}

function library(assert, mocha) {
  const classes = ['Runner', 'Suite', 'Test', 'Context'].map((name) => [`Mocha.${name}.prototype`, mocha[name].prototype]);
  return [['assert', assert], ['assert.strict', assert.strict], ...classes];
}

function isTestFile(file) {
  return answer.files.includes(relative(file.startsWith('file:') ? fileURLToPath(file) : file));
}

function shuffleSuite(suite, next) {
  for (const list of [suite.tests, suite.suites]) {
    for (let i = list.length - 1; i > 0; i--) {
      const j = Math.floor(next() * (i + 1));
      [list[i], list[j]] = [list[j], list[i]];
    }
  }
  for (const inner of suite.suites) shuffleSuite(inner, next);
}

function random(seed) {
  // mulberry32, https://github.com/cprosche/mulberry32
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
