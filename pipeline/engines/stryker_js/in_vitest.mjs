// vitest, as a library. Its tests run in a thread of its own, which has the guard and the switch by way of a setup file
// (vitest_setup.mjs) and leaves what it saw in the tests' and the file's `meta`; outcomes are read from its state here.
import child_process from 'node:child_process';
import module from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import threads from 'node:worker_threads';
import { entryOf } from './session.mjs';

const SETUP = fileURLToPath(new URL('./vitest_setup.mjs', import.meta.url));

// Each thread keeps room for compiled code, of newer versions of Node.js half of what a sandbox allows a process.
const CODE_MB = 64;

export async function run(session) {
  const { Worker } = threads;
  threads.Worker = class extends Worker {
    constructor(file, options) {
      super(file, { ...options, resourceLimits: { codeRangeSizeMb: CODE_MB, ...options?.resourceLimits } });
    }
  };
  const programs = startedHere();
  module.syncBuiltinESMExports();
  const { require, root, scratch, shuffle, only, answer } = session;
  const { createVitest } = await import(entryOf(require, 'vitest', './node'));
  const files = session.files?.map((file) => path.resolve(root, file)) ?? null;
  const sequence = shuffle === null ? {} : { sequence: { shuffle: { files: true, tests: true }, seed: shuffle } };
  process.env.NODE_ENV = 'test';
  const vitest = await createVitest(
    'test',
    {
      watch: false,
      reporters: [{}],
      coverage: { enabled: false },
      typecheck: { enabled: false },
      cache: false,
      pool: 'threads', // as Stryker's: no process is left to be ended
      poolOptions: { threads: { minThreads: 1, maxThreads: 1 } },
      maxWorkers: 1,
      minWorkers: 1,
      fileParallelism: false,
      maxConcurrency: 1,
      onConsoleLog: () => false,
      passWithNoTests: true,
      ...(only === null ? {} : { testNamePattern: new RegExp(`^(${only.map(literal).join('|')})$`) }),
      ...sequence,
    },
    { cacheDir: path.join(scratch, 'vite'), logLevel: 'silent', clearScreen: false },
  );
  for (const project of vitest.projects) project.config.setupFiles = [SETUP, ...project.config.setupFiles];
  const { mutant, watched, out } = session;
  vitest.provide('doit-mutate', {
    root,
    mutant,
    shuffle,
    watched,
    out,
    files: files?.map((f) => session.relative(f)) ?? null,
  });
  await vitest.start(files ?? []);
  const modules = vitest.state.getFiles();
  session.loads(modules.map(({ filepath }) => filepath));
  for (const module of modules) {
    const order = Object.keys(module.meta['doit-mutate']?.coverage.perTest ?? {}); // as they ran, which is not as they stand
    const place = (test) => order.indexOf(titleOf(test));
    for (const test of testsOf(module).sort((a, b) => place(a) - place(b))) tell(session, module, test);
    const failed = module.result?.errors?.[0];
    if (failed && !testsOf(module).length) answer.error ??= String(failed.stack ?? failed.message);
  }
  for (const { meta } of modules) {
    const said = meta['doit-mutate'];
    if (!said) continue;
    session.reaches(said.coverage);
    for (const [title, left] of said.left) session.leaves(title, left);
    if (said.looped) answer.looped = true;
  }
  // What is thrown outside of every test is nobody's: no run that has it is to be believed.
  for (const error of vitest.state.getUnhandledErrors()) answer.error ??= `outside of a test: ${error?.stack ?? error}`;
  if (session.record) answer.loaded = [...loaded(vitest, session)].sort();
  if (session.record && modules.every(({ meta }) => meta['doit-mutate']?.loads)) {
    const relative = (file) => session.relative(file);
    const each = modules.map(({ filepath, meta }) => [
      relative(filepath),
      [filepath, ...meta['doit-mutate'].loads].map(relative),
    ]);
    answer.loads = { each: Object.fromEntries(each), shared: [] };
  }
  await vitest.close();
  await Promise.all(programs.map(ended));
  session.finish();
}

// Vite keeps esbuild as a program of its own, which would be taken for one that the tests have left. Theirs are started
// in their thread, which has a `child_process` of its own.
function startedHere() {
  const { spawn } = child_process;
  const programs = [];
  child_process.spawn = (...args) => {
    const program = spawn(...args);
    programs.push(program);
    return program;
  };
  return programs;
}

function ended(program) {
  if (program.exitCode !== null || program.signalCode !== null) return null;
  program.ref();
  return new Promise((done) => program.once('exit', done) && program.kill('SIGKILL'));
}

const literal = (title) => title.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

function* each(task) {
  for (const inner of task.tasks ?? []) {
    if (inner.tasks) yield* each(inner);
    else yield inner;
  }
}
const testsOf = (task) => [...each(task)];

function tell(session, module, test) {
  const { state, errors = [] } = test.result ?? {};
  const hook = failedSuite(test);
  const failed = state === 'fail' || hook !== null;
  const error = errors[0] ?? hook;
  // A suite's hook that fails leaves its tests without a result of their own.
  const isOther = hook !== null || /^(Test|Hook) timed out/.test(error?.message ?? '');
  const done = failed ? 'failed' : state === 'pass' ? 'passed' : 'skipped';
  const took = test.result?.duration;
  session.tested(module.filepath, titleOf(test), { state: done, error: failed ? parsed(error) : undefined, isOther, took });
}

// What came over from the process of the tests: plain data.
const parsed = (error) => ({
  ...error,
  stack: error?.stack ?? error?.stackStr ?? '',
  message: error?.message ?? String(error),
});

function failedSuite({ suite }) {
  for (let at = suite; at; at = at.suite)
    if (at.result?.state === 'fail' && at.result.errors?.length) return at.result.errors[0];
  return null;
}

export function titleOf(test) {
  const names = [test.name];
  for (let at = test.suite; at; at = at.suite) names.unshift(at.name);
  return names.join(' ').trim();
}

function* loaded(vitest, { root, relative }) {
  for (const project of vitest.projects) {
    const server = project.server ?? project.vite;
    const graphs = [
      server.moduleGraph,
      ...Object.values(server.environments ?? {}).map(({ moduleGraph }) => moduleGraph),
    ];
    for (const graph of graphs) {
      for (const module of graph?.idToModuleMap?.values() ?? []) {
        const file = module.file;
        if (file?.startsWith(root + path.sep) && !/[\\/](node_modules|\.doit-mutate)[\\/]/.test(file)) {
          yield path.relative(root, file).split(path.sep).join('/');
        }
      }
    }
  }
}
