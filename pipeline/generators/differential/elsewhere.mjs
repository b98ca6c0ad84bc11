/**
 * What another engine may do otherwise, and what another locale does: the words of its errors, which two values a sort
 * compares first, and texts for people where no locale is named. `sides` says which of both is to be shown now.
 */

const WORDED = [
  [JSON, 'parse stringify'],
  [globalThis, 'decodeURI decodeURIComponent encodeURI encodeURIComponent structuredClone atob btoa'],
  [String.prototype, 'normalize repeat localeCompare matchAll replaceAll'],
  [Number.prototype, 'toFixed toPrecision toExponential toString'],
  [Date.prototype, 'toISOString'],
  [Buffer, 'from alloc concat'],
];
// Where the locale is left out, one that gives another text.
const UNNAMED = [
  [Number.prototype, 'toLocaleString', 'ar-EG', 0],
  [BigInt.prototype, 'toLocaleString', 'ar-EG', 0],
  [Date.prototype, 'toLocaleString toLocaleDateString toLocaleTimeString', 'ar-EG', 0],
  [String.prototype, 'localeCompare', 'sv', 1],
  [String.prototype, 'toLocaleUpperCase toLocaleLowerCase', 'tr', 0],
];
const FORMATS = 'NumberFormat DateTimeFormat ListFormat PluralRules RelativeTimeFormat DisplayNames';
const ENGINES = /^\s+at (new )?[^\n]*\((<anonymous>|node:[^\n]*)\)/; // the frame that threw
const { apply, construct } = Reflect;

/** sides: { isRough, isElsewhere }, read at each call. */
export function installElsewhere(sides) {
  for (const [of, names] of WORDED)
    for (const name of names.split(' '))
      wrap(of, name, (real, self, args) => {
        try {
          return apply(real, self, args);
        } catch (error) {
          throw sides.isRough ? reworded(error) : error;
        }
      });
  for (const [of, names, locale, at] of UNNAMED)
    for (const name of names.split(' '))
      wrap(of, name, (real, self, args) => {
        if (!sides.isElsewhere || args[at] !== undefined) return apply(real, self, args);
        const named = [...args];
        named[at] = locale;
        return apply(real, self, named);
      });
  for (const name of FORMATS.split(' ')) {
    const Real = Intl[name];
    const named = (args) => (sides.isElsewhere && args[0] === undefined ? ['ar-EG', ...args.slice(1)] : args);
    Intl[name] = new Proxy(Real, {
      apply: (target, self, args) => apply(target, self, named(args)),
      construct: (target, args, by) => construct(target, named(args), by === Intl[name] ? target : by),
    });
  }
  for (const name of ['sort', 'toSorted'])
    if (Array.prototype[name])
      wrap(Array.prototype, name, (real, self, args) => {
        const [compare] = args;
        if (!sides.isRough || typeof compare !== 'function' || !Array.isArray(self)) return apply(real, self, args);
        const list = name === 'sort' ? self : [...self];
        const held = list.filter(() => true); // without holes, which come last
        const values = merged(held.filter((v) => v !== undefined), compare);
        for (let i = 0; i < list.length; i++)
          if (i < held.length) list[i] = values[i];
          else delete list[i];
        return list;
      });
}

function wrap(of, name, act) {
  const real = of[name];
  const { [name]: value } = {
    [name](...args) {
      return act(real, this, args);
    },
  };
  Object.defineProperty(of, name, { ...Object.getOwnPropertyDescriptor(of, name), value });
}

/** The same error in other words, where it is the engine's own. */
function reworded(error) {
  const [, first = ''] = String(error?.stack).split(/\n(?=\s+at )/);
  if (error instanceof Error && ENGINES.test(first))
    Object.defineProperty(error, 'message', { value: `${error.message}, in other words`, configurable: true });
  return error;
}

/** Sorted by merging: the order is the one that the language promises, the pairs that are compared are others. */
function merged(list, compare) {
  if (list.length < 2) return list;
  const middle = list.length >> 1;
  const right = merged(list.slice(middle), compare); // first, so that the first pair is another, too
  const left = merged(list.slice(0, middle), compare);
  const all = [];
  while (left.length && right.length) all.push(compare(left[0], right[0]) > 0 ? right.shift() : left.shift());
  return [...all, ...left, ...right];
}
