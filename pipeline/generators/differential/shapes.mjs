/** What a module gives to a test, as seen once it is loaded: functions, classes, objects of functions, values. */

import { describe } from './program.mjs';

const DEEP = 2; // members of members
const MANY = 40;

const isOwn = (key) => typeof key === 'string' && !/^(prototype|length|name|arguments|caller|__esModule)$/.test(key);

/**
 * { kind, name, arity, members }: kind is class | function | object | value; name is a function's own; members: name →
 * shape, of what can be called or looked at on it. For a class also `own`: the names on its prototype and on those below
 * it, and `bases`: the names of the classes that these are of. For a value `init`: the expr that says it, if one does.
 */
export function shapeOf(value, depth = 0) {
  if (typeof value === 'function') {
    const isGenerator = /GeneratorFunction\]$/.test(Object.prototype.toString.call(value));
    const prototypes = isGenerator ? [] : prototypesOf(value.prototype);
    const own = prototypes
      .flatMap((p) => Object.entries(Object.getOwnPropertyDescriptors(p)))
      .filter(([key, d]) => key !== 'constructor' && ('value' in d || d.get));
    const isClass = /^class\b/.test(Function.prototype.toString.call(value)) || own.length > 0;
    return {
      kind: isClass ? 'class' : 'function',
      name: value.name,
      arity: value.length,
      own: own.map(([key, d]) => ({ name: key, call: typeof d.value === 'function' })),
      bases: prototypes.slice(1).map((p) => Object.getOwnPropertyDescriptor(p, 'constructor')?.value?.name ?? ''),
      members: membersOf(value, depth),
    };
  }
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    const members = membersOf(value, depth);
    const kind = Object.values(members).some((m) => m.kind !== 'value') ? 'object' : 'value';
    return { kind, name: '', members: kind === 'object' ? members : {}, init: kind === 'value' ? said(value) : null };
  }
  return { kind: 'value', name: '', members: {}, init: said(value) };
}

function said(value) {
  try {
    return describe(value);
  } catch {
    return null; // no short literal says it
  }
}

/** A prototype and those below it, without those that every program has. */
function prototypesOf(prototype) {
  const found = [];
  for (let p = prototype; p && typeof p === 'object'; p = Object.getPrototypeOf(p)) {
    const maker = Object.getOwnPropertyDescriptor(p, 'constructor')?.value;
    if (typeof maker === 'function' && /\[native code\]/.test(Function.prototype.toString.call(maker))) break;
    found.push(p);
  }
  return found;
}

function membersOf(value, depth) {
  if (depth >= DEEP) return {};
  const members = {};
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(value)).slice(0, MANY)) {
    if (!isOwn(key) || !('value' in descriptor) || descriptor.value === value) continue;
    members[key] = shapeOf(descriptor.value, depth + 1);
  }
  return members;
}

/** namespaces: file → namespace → file → name → shape. `default` alone stands for a CommonJS module. */
export function shapesOf(namespaces, formats) {
  return Object.fromEntries(
    Object.entries(namespaces).map(([file, namespace]) => {
      const names = Object.keys(namespace);
      const isWhole = formats[file] === 'commonjs' && names.includes('default');
      return [file, Object.fromEntries((isWhole ? ['default'] : names).map((name) => [name, shapeOf(namespace[name])]))];
    }),
  );
}
