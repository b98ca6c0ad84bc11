// node:test in this process. Node.js runs a test as soon as it is made, in the order of the text; so what test files
// import as node:test is an interface of ours that notes what they make, and hands it to node:test afterwards: shuffled,
// or only some, each told of as it starts. What becomes of them is what node:test reports: this file is its reporter too
// (--test-reporter). Each file is a suite of its own there, so that its hooks are its own.
import fs from 'node:fs';
import module, { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { refused } from './guard.mjs';
import { random, shuffled } from './session.mjs';

const real = createRequire(import.meta.url)('node:test');
const HOOKS = ['before', 'after', 'beforeEach', 'afterEach'];
const OTHER = new Set(['hookFailed', 'testTimeoutFailure', 'cancelledByParent', 'parentAlreadyFinished']);
let report = () => {};
let suite = null; // the one whose function runs: { kind, name, options, fn, members }
let isLoading = false;

// The reporter: an async generator over node:test's events, which prints nothing.
// eslint-disable-next-line require-yield
export default async function* reporter(source) {
  for await (const event of source) report(event);
}

export async function run(session) {
  session.guard();
  const files = (session.files ?? found(session.root)).map((file) => path.resolve(session.root, file));
  session.loads(files);
  takeThePlaceOfNodeTest();
  await session.watchLoads();
  const roots = [];
  isLoading = true;
  for (const file of files) {
    roots.push((suite = { kind: 'suite', name: session.relative(file), options: {}, members: [], path: [] }));
    await import(pathToFileURL(file).href);
  }
  isLoading = !session.watched;
  suite = null;
  if (session.only !== null) for (const root of roots) pick(root, new Set(session.only));
  if (session.shuffle !== null)
    for (const root of shuffled(roots, random(session.shuffle))) shuffle(root, random(session.shuffle));
  real.before(() => {}); // with the first of these node:test listens to the process's end: no test does
  const assert = session.require('node:assert');
  session.begin([
    ['assert', assert],
    ['assert.strict', assert.strict],
  ]);
  if (session.watched) process.on('unhandledRejection', () => session.watch.rejected(session.current));
  session.between();
  const kinds = new Map(
    roots.flatMap((root) => [...paths(root)].map((member) => [key(root.name, member.path), member.kind])),
  );
  let left = roots.length;
  report = listener(session, kinds, async () => {
    if (--left > 0) return;
    await session.ended();
    session.finish();
  });
  if (left === 0) session.finish();
  for (const root of roots) hand(root, session);
}

// What Node.js takes for test files by itself. https://nodejs.org/api/test.html#running-tests-from-the-command-line
function found(root) {
  const all = fs.readdirSync(root, { recursive: true }).map((file) => file.split(path.sep).join('/'));
  const isTest = /(^|\/)(test(-[^/]*)?|[^/]*[._-]test)\.[cm]?js$|(^|\/)test\/.*\.[cm]?js$/;
  return all.filter((file) => isTest.test(file) && !/(^|\/)(node_modules|\.[^/]+)\//.test(file)).sort();
}

// -- what test files import

function takeThePlaceOfNodeTest() {
  const ours = Object.assign(note('test'), {
    test: note('test'),
    it: note('test'),
    describe: note('suite'),
    suite: note('suite'),
  });
  for (const kind of HOOKS) ours[kind] = (fn, options) => void add({ kind, fn, options });
  Object.assign(ours, { mock: real.mock, snapshot: real.snapshot, run: refused });
  const { _load } = module;
  module._load = function load(request, ...rest) {
    return request === 'node:test' ? ours : Reflect.apply(_load, this, [request, ...rest]);
  };
  const names = Object.keys(ours).filter((name) => ours[name] !== undefined);
  globalThis[KEY] = ours;
  const text = `const ours = globalThis[Symbol.for('node:test of the tests')];\nexport default ours;\n${names.map((name) => `export const ${name} = ours.${name};`).join('\n')}`;
  const url = `data:text/javascript,${encodeURIComponent(text)}`;
  if (module.registerHooks) {
    module.registerHooks({
      resolve: (specifier, context, next) =>
        specifier === 'node:test' ? { url, format: 'module', shortCircuit: true } : next(specifier, context),
    });
  } else {
    const hooks = `export const resolve = (specifier, context, next) => specifier === 'node:test' ? { url: ${JSON.stringify(url)}, format: 'module', shortCircuit: true } : next(specifier, context);`;
    module.register(`data:text/javascript,${encodeURIComponent(hooks)}`);
  }
}

const KEY = Symbol.for('node:test of the tests');

function note(kind) {
  const make =
    (more) =>
    (...given) => {
      const fn = given.find((value) => typeof value === 'function');
      const options = given.find((value) => value !== null && typeof value === 'object') ?? {};
      const name = typeof given[0] === 'string' ? given[0] : fn?.name || '<anonymous>';
      add({ kind, name, fn, options: { ...options, ...more }, members: [] });
      return Promise.resolve();
    };
  return Object.assign(make({}), {
    skip: make({ skip: true }),
    todo: make({ todo: true }),
    only: make({ only: true }),
  });
}

function add(member) {
  if (!isLoading || suite === null) refused();
  const made = { ...member, path: member.name === undefined ? suite.path : [...suite.path, member.name] };
  suite.members.push(made);
  if (made.kind !== 'suite' || !made.fn) return;
  const outer = suite;
  suite = made;
  try {
    if (made.fn({ name: made.name, fullName: made.path.join(' > ') }) instanceof Promise) {
      throw new Error(`an async suite cannot be run here: ${made.name}`);
    }
  } finally {
    suite = outer;
  }
}

// -- what node:test gets

function* paths(node) {
  for (const member of node.members) {
    yield member;
    if (member.kind === 'suite') yield* paths(member);
  }
}

const titleOf = ({ path: names }) => names.join(' ');

function pick(node, wanted) {
  node.members = node.members.filter((member) => {
    if (member.kind === 'suite') return pick(member, wanted);
    return member.kind !== 'test' || wanted.has(titleOf(member));
  });
  return node.members.some(({ kind }) => kind === 'test' || kind === 'suite');
}

function shuffle(node, next) {
  const isTest = ({ kind }) => kind === 'test' || kind === 'suite';
  const tests = shuffled(node.members.filter(isTest), next);
  node.members = [...node.members.filter((member) => !isTest(member)), ...tests];
  for (const member of tests) if (member.kind === 'suite') shuffle(member, next);
}

function hand(node, session) {
  if (node.kind === 'suite') {
    real.describe(node.name, node.options, () => {
      for (const member of node.members) hand(member, session);
    });
  } else if (node.kind === 'test') {
    const { fn } = node;
    const title = titleOf(node);
    if (!fn) real.test(node.name, node.options);
    else if (fn.length < 2) {
      real.test(node.name, node.options, async function test(context) {
        session.started(title);
        try {
          await Reflect.apply(fn, this, [context]);
        } finally {
          session.between();
        }
      });
    } else {
      real.test(node.name, node.options, function test(context, done) {
        session.started(title);
        return Reflect.apply(fn, this, [context, (...given) => (session.between(), done(...given))]);
      });
    }
  } else real[node.kind](node.fn, node.options);
}

// -- what node:test says

// Events come in the order of the text; nesting 0 is a file, and what lies below a test is part of it. kinds: what each
// path is, as `key` writes it.
function listener(session, kinds, fileEnded) {
  const names = [];
  let part = null; // error of the first part of a test that failed
  return ({ type, data }) => {
    if (type === 'test:start') {
      names.length = data.nesting;
      names.push(data.name);
    }
    if (type !== 'test:pass' && type !== 'test:fail') return;
    const { nesting } = data;
    const failure = data.details?.error;
    const error = failure?.cause ?? failure;
    const here = [...names.slice(1, nesting), data.name];
    const kind = nesting === 0 ? 'file' : kinds.get(key(names[0], here));
    if (kind === 'file') {
      if (failure && failure.failureType !== 'subtestsFailed')
        session.answer.error ??= String(error?.stack ?? error).slice(0, 4000);
      fileEnded();
    } else if (kind === 'test') {
      const state = data.skip !== undefined || data.todo !== undefined ? 'skipped' : failure ? 'failed' : 'passed';
      const took = data.details?.duration_ms;
      const how = { state, error: part ?? error, isOther: OTHER.has(failure?.failureType), took };
      session.tested(path.resolve(session.root, names[0]), here.join(' '), how);
      part = null;
    } else if (!kind && failure) part ??= error;
  };
}

const key = (file, names) => [file, ...names].join('\0');
