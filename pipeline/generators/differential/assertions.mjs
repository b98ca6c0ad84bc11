/** What a test says of a value or an error, in the words of each assertion library. */

import { call, get, global, lit, record, walk } from './program.mjs';

/**
 * The statements, as exprs: [expr]. observe: the expr whose value is asserted, awaited where `wait` says so; outcome: as
 * the worker gives it; style: as styleOf found it; isBare: an exception is made an assertion's failure, too.
 */
export function assertion(style, { observe, wait }, outcome, isBare = false) {
  const say = LIBRARIES[style.library](style.name, style.strict);
  if (outcome.kind !== 'throw') {
    const { expr } = outcome;
    const actual = wait ? { k: 'await', of: observe } : observe;
    const said = isSimple(expr) ? say.same(actual, expr) : say.alike(actual, expr);
    return [isBare && !wait ? say.calm({ ...functionOf(style), of: said }) : said];
  }
  // What throws is the call: a copy of its result's keys is never made. A list is: it may be what throws.
  const throwing = observe.k === 'spread' && observe.as === 'record' ? observe.of : observe;
  const error = record([
    ['name', lit(outcome.name)],
    ['message', lit(outcome.message)],
  ]);
  if (!wait) return [say.throws({ ...functionOf(style), of: throwing }, error)];
  if (say.rejects) return [{ k: 'await', of: say.rejects(throwing, error) }];
  const caught = call(get(throwing, 'catch'), [{ k: 'code', text: '({ name, message }) => ({ name, message })' }]);
  return [say.alike({ k: 'await', of: caught }, error)];
}

const functionOf = ({ declare, semi }) => ({ k: declare === 'var' ? 'function' : 'arrow', end: semi ? ';' : '' });
const isSimple = (expr) => expr.k === 'lit';
const isOdd = (expr) => expr.k === 'lit' && (Number.isNaN(expr.v) || Object.is(expr.v, -0));
const hasHoles = (expr) => [...walk(expr)].some((e) => e.k === 'lit' && e.v === undefined);
const member = (of, ...names) => names.reduce((e, name) => get(e, name), of);
const methodsOf =
  (name) =>
  (method) =>
  (...given) =>
    call(member(global(name), method), given);

const LIBRARIES = {
  assert: (name, strict) => {
    const one = methodsOf(name);
    const rejects = one('rejects');
    return {
      same: one(strict ? 'equal' : 'strictEqual'),
      alike: one(strict ? 'deepEqual' : 'deepStrictEqual'),
      throws: one('throws'),
      calm: one('doesNotThrow'),
      rejects: (promise, error) => rejects({ k: 'async arrow', of: promise }, error),
    };
  },
  expect: (name) => {
    const on =
      (actual, ...path) =>
      (...given) =>
        call(member(call(global(name), [actual]), ...path), given);
    const like = (error) => call(member(global(name), 'objectContaining'), [error]);
    return {
      same: (actual, expr) => on(actual, 'toBe')(expr),
      alike: (actual, expr) => on(actual, hasHoles(expr) ? 'toStrictEqual' : 'toEqual')(expr),
      throws: (fn, error) => on(fn, 'toThrow')(like(error)),
      calm: (fn) => on(fn, 'not', 'toThrow')(),
      rejects: (promise, error) => on(promise, 'rejects', 'toThrow')(like(error)),
    };
  },
  chai: (name) => {
    const on =
      (actual, ...path) =>
      (...given) =>
        call(member(call(global(name), [actual]), 'to', ...path), given);
    const alike = (actual, expr) => on(actual, 'deep', 'equal')(expr);
    return {
      same: (actual, expr) => (isOdd(expr) ? alike(actual, expr) : on(actual, 'equal')(expr)),
      alike,
      throws: (fn, error) => call(member(on(fn, 'throw')(), 'that', 'includes'), [error]),
      calm: (fn) => on(fn, 'not', 'throw')(),
    };
  },
  'chai-assert': (name) => {
    const one = methodsOf(name);
    const alike = one('deepEqual');
    return {
      same: (actual, expr) => (isOdd(expr) ? alike(actual, expr) : one('strictEqual')(actual, expr)),
      alike,
      throws: (fn, error) => one('throws')(fn, error.entries[1][1]),
      calm: one('doesNotThrow'),
    };
  },
  tape: (name) => {
    const one = methodsOf(name);
    return { same: one('equal'), alike: one('deepEqual'), throws: one('throws'), calm: one('doesNotThrow') };
  },
};
