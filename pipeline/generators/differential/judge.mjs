/** What a run says: as a test would assert it of the original, and whether that test fails on a mutant. */

import { isDeepStrictEqual } from 'node:util';

import { Unprintable, describe, isData } from './program.mjs';
import { Run, isThenable } from './run.mjs';

const MOST_NAMES = 6; // members of a result that are looked at one by one
const NATIVE = {
  TypeError:
    /is not (a|an|iterable|defined|extensible)|is not$|Cannot (read|set|convert|destructure|mix|delete|assign|redefine|use)|of (undefined|null)|not iterable|Reduce of empty|Invalid (Date|attempt)/,
  RangeError: /call stack|Invalid (array|string|time|count|date|typed)|toFixed|toString\(\) radix|Maximum|precision/,
  ReferenceError: /./,
  SyntaxError: /JSON|regular expression|BigInt|Unexpected (token|end)/,
  URIError: /malformed/,
};

/** Are these the engine's own words, or Node's? */
const isTheirs = (error, message) =>
  Boolean(NATIVE[error.constructor?.name]?.test(message)) || /^ERR_/.test(String(error.code ?? ''));

/** What the original's run says, as a test would assert it; `hint` names a change that makes it say something. */
export function judge(program, run) {
  // A getter that throws, a proxy whose traps lie: to look is to run code.
  return looked(() => said(program, run), { kind: 'bad', why: 'it cannot be looked at' });
}

/** What `look` gives; `otherwise` where the code that it runs throws. */
function looked(look, otherwise) {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

function said(program, run) {
  if (run.unusable) return { kind: 'bad', why: run.unusable };
  if ('error' in run) {
    const { error } = run;
    if (!(error instanceof Error)) return { kind: 'bad', why: 'throws no Error' };
    if (run.at < program.steps.length) return { kind: 'hint', hint: 'cut', at: run.at };
    const { name, message } = error;
    if (typeof message !== 'string' || message.length > 300) return { kind: 'bad', why: 'a long message' };
    return { kind: 'throw', name, message, native: isTheirs(error, message) };
  }
  const { value } = run;
  if (isThenable(value)) return { kind: 'hint', hint: 'wait' };
  try {
    const expr = describe(value);
    if (isDeepStrictEqual(value, new Run({}).value(expr))) return { kind: 'value', expr };
  } catch (error) {
    if (!(error instanceof Unprintable)) throw error;
  }
  if (typeof value === 'function' && program.observe.k === 'call')
    return { kind: 'hint', hint: 'members', members: [{ name: '', call: true }, ...methodsOf(value)] };
  const isPlain = value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;
  // One member that cannot be written down keeps the others from being looked at no longer.
  const names = isPlain ? Object.keys(value).slice(0, MOST_NAMES) : [];
  if (program.observe.k === 'spread' && names.length) return { kind: 'hint', hint: 'keys', names };
  if (program.observe.k === 'spread' || value === null || typeof value !== 'object')
    return { kind: 'bad', why: 'no literal says it' };
  if (value instanceof Error) return { kind: 'hint', hint: 'message' };
  if (typeof value[Symbol.iterator] === 'function') return { kind: 'hint', hint: 'list' };
  const members = program.observe.k === 'call' ? methodsOf(value) : [];
  const hasKeys = Object.keys(value).length > 0;
  if (members.some((m) => m.call)) return { kind: 'hint', hint: 'members', members, hasKeys };
  return Object.keys(value).length ? { kind: 'hint', hint: 'record' } : { kind: 'bad', why: 'no literal says it' };
}

/** What can be called or looked at on a value that a call returned: its own and those of its prototypes. */
function methodsOf(value) {
  const found = new Map();
  const isBase = (at) => at === null || [Object.prototype, Function.prototype].includes(at);
  for (let at = value; !isBase(at); at = Object.getPrototypeOf(at)) {
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (/^(constructor|prototype|length|name|arguments|caller|_.*)$/.test(name) || found.has(name)) continue;
      found.set(name, typeof descriptor.value === 'function');
    }
  }
  return [...found].slice(0, 30).map(([name, call]) => ({ name, call, isStatic: false, makesOne: false }));
}

/** Would the test that asserts `outcome` fail on this run, by an assertion or an exception out of the code under test? */
export function fails(outcome, run) {
  // Where it cannot be looked at, a test would fail by an exception of its own.
  return !run.unusable && looked(() => differs(outcome, run), false);
}

function differs(outcome, run) {
  if (outcome.kind === 'throw') {
    const { error } = run;
    return !('error' in run) || error?.name !== outcome.name || error?.message !== outcome.message;
  }
  return 'error' in run || !isDeepStrictEqual(run.value, new Run({}).value(outcome.expr));
}

export const asserts = (outcome) => outcome.kind === 'value' || outcome.kind === 'throw';

/** The data arguments of the last call, where a run left them changed in another way than the original did. */
export function changedArgument(program, original, mutated) {
  if (program.observe.k !== 'call' || !('value' in mutated) || !original.args) return null;
  const at = program.observe.args.findIndex(
    (e, i) => isData(e) &&
      e.k !== 'lit' &&
      e.k !== 'code' &&
      looked(() => !isDeepStrictEqual(original.args[i], mutated.args[i]), false),
  );
  return at < 0 ? null : at;
}
