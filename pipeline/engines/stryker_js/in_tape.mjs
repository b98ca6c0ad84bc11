// tape, as a library, in this process: its own harness, held until the files have been loaded.
import fs from 'node:fs';
import path from 'node:path';
import { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { random, shuffled } from './session.mjs';

const now = performance.now.bind(performance);

export async function run(session) {
  session.guard();
  await session.watchLoads();
  const { require, root, only, shuffle, watched } = session;
  const files = (session.files ?? found(root)).map((file) => path.resolve(root, file));
  session.loads(files);
  const tape = require('tape');
  tape.wait();
  const harness = tape.getHarness({ objectMode: true, exit: false, stream: sink() });
  const { _results: results } = harness;
  for (const file of files) {
    const before = results.tests.length;
    await import(pathToFileURL(file).href);
    for (const test of results.tests.slice(before)) test.file = file;
  }
  const picked = results.tests.filter(({ name }) => only === null || only.includes(name));
  results.tests = shuffle === null ? picked : shuffled(picked, random(shuffle));

  const assert = require('node:assert');
  session.begin([
    ['assert', assert],
    ['assert.strict', assert.strict],
    ['tape.Test.prototype', tape.Test.prototype],
  ]);
  if (watched) process.on('unhandledRejection', () => session.watch.rejected(session.current));
  if (watched) for (const name of ['push', 'only']) results[name] = refusedHere;
  let open = null; // the test that runs, its first assertion that failed
  // What throws out of a test ends the process there; here it is that test's failure, and the next one runs.
  const thrown = (error) => {
    if (!open) return;
    open.thrown ??= error;
    open.test.end();
  };
  process.on('uncaughtException', thrown);
  for (const test of results.tests) {
    const { _cb: body } = test;
    if (body) test._cb = (t) => caught(body, t, thrown);
    test.on('prerun', () => {
      open = { test, failed: null, thrown: null, since: now() };
      if (!test._skip && test._cb) session.started(test.name);
    });
    watchResults(test, (result) => (open.failed ??= result));
    test.on('end', () => {
      const skipped = Boolean(test._skip || test._todo || !test._cb);
      const { failed } = open;
      const error = open.thrown ?? (failed && assertionOf(failed));
      session.tested(test.file, test.name, {
        state: skipped ? 'skipped' : error ? 'failed' : 'passed',
        error,
        isOther: !open.thrown && isOther(failed),
        took: now() - open.since,
      });
      session.between();
    });
  }
  results.once('done', async () => {
    await session.ended();
    session.finish();
  });
  tape.run();
}

function caught(body, t, thrown) {
  try {
    return body(t);
  } catch (error) {
    return thrown(error);
  }
}

function refusedHere() {
  throw new Error('a test may not make another');
}

// Nobody reads what the harness says: each test tells of itself.
const sink = () => new Writable({ objectMode: true, write: (row, encoding, next) => next() });

// A test's results, and those of the tests in it.
function watchResults(test, onFailed) {
  test.on('result', (result) => {
    if (typeof result === 'object' && !result.ok && !result.todo && !result.skip) onFailed(result);
  });
  test.on('test', (inner) => watchResults(inner, onFailed));
}

// An error out of the code under test comes as the result of `ifError`, or as what an async test was rejected with.
function assertionOf({ error, operator, actual, name }) {
  if (operator === 'error' && actual instanceof Error) return actual;
  const made = error instanceof Error ? error : new Error(String(name));
  made.code = 'ERR_ASSERTION';
  made.message = name ?? made.message;
  return made;
}

// What tape says of itself: a test that did not end, or ended twice.
function isOther(failed) {
  return (
    failed?.operator === 'fail' &&
    /timed out after|test exited without ending|already called|plan != count/.test(failed.name ?? '')
  );
}

// What `tape 'test/**/*.js'` is mostly told.
function found(root) {
  const folder = path.join(root, 'test');
  const all = fs.existsSync(folder) ? fs.readdirSync(folder, { recursive: true }) : [];
  return all
    .filter((file) => /\.[cm]?js$/.test(file))
    .map((file) => `test/${file.split(path.sep).join('/')}`)
    .sort();
}
