// mocha, as a library, in this process: its own options, its own loading of files, its own run.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { refuseTestsInTests } from './guard.mjs';
import { random, shuffled } from './session.mjs';

export async function run(session) {
  session.guard();
  const { require, files, only, shuffle, watched, bail = false, answer } = session;
  await session.watchLoads();
  const mochaRoot = path.dirname(require.resolve('mocha/package.json'));
  const { default: Mocha } = await import(pathToFileURL(require.resolve('mocha')).href);
  const fromMocha = (file) => require(path.join(mochaRoot, 'lib/cli', file));
  // mocha takes longer to read its options than to run a test.
  answer.options = session.options ?? (fromMocha('options.js').loadOptions([]) || {});
  const { ignore = [], extension = [], file = [], require: required = [], ...options } = answer.options;
  const toLoad = [...file, ...(files ?? [])].map((f) => path.resolve(f));
  if (files === null) {
    const collectFiles = fromMocha('collect-files.js');
    const spec = options.spec?.length ? [options.spec].flat() : ['./test'];
    toLoad.push(...collectFiles({ ignore, extension, file: [], spec, recursive: options.recursive, sort: true }).files);
  }
  const modules = [required].flat();
  const plugins = modules.length > 0 ? await fromMocha('run-helpers.js').handleRequires(modules) : {};
  const { ui } = options;
  const timeout = session.unlimited ? 0 : options.timeout;
  // fullTrace: else mocha takes the folder out of a stack's paths, and nobody can say whose code threw.
  const mocha = new Mocha({ ui, timeout, bail, rootHooks: plugins.rootHooks, reporter: class {}, fullTrace: true });
  for (const test of toLoad) mocha.addFile(test);
  if (only !== null)
    mocha.grep(new RegExp(`^(${only.map((title) => title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})$`));
  session.loads(toLoad);
  await mocha.loadFilesAsync();
  if (shuffle !== null) shuffleSuite(mocha.suite, random(shuffle));

  if (watched) refuseTestsInTests();
  const assert = require('node:assert');
  const classes = ['Runner', 'Suite', 'Test', 'Context'].map((name) => [
    `Mocha.${name}.prototype`,
    Mocha[name].prototype,
  ]);
  session.begin([['assert', assert], ['assert.strict', assert.strict], ...classes]);
  // mocha passes over it
  if (watched) process.on('unhandledRejection', () => session.watch.rejected(session.current));
  // The same in every run, so that no test can tell by it which run it is in.
  const runner = mocha.run(async () => {
    await session.ended();
    session.finish();
  });
  const told = (test, how) => session.tested(test.file ?? '', test.fullTitle(), how);
  runner.on('test', (test) => session.started(test.fullTitle()));
  runner.on('pass', (test) => told(test, { state: 'passed', took: test.duration }));
  runner.on('pending', (test) => told(test, { state: 'skipped' }));
  runner.on('fail', (test, error) => {
    const isOther = test.type === 'hook' || error?.code === 'ERR_MOCHA_TIMEOUT';
    told(test, { state: 'failed', error, isOther, took: test.duration });
  });
}

function shuffleSuite(suite, next) {
  shuffled(suite.tests, next);
  shuffled(suite.suites, next);
  for (const inner of suite.suites) shuffleSuite(inner, next);
}
