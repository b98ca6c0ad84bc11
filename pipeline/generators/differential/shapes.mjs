/** What a module gives to a test, as seen once it is loaded: functions, classes, objects of functions, values. */

const DEEP = 2; // members of members
const MANY = 40;

const isOwn = (key) => typeof key === 'string' && !/^(prototype|length|name|arguments|caller|__esModule)$/.test(key);

/**
 * { kind, name, arity, members }: kind is class | function | object | value; name is a function's own; members: name →
 * shape, of what can be called or looked at on it. For a class also `own`: the names on its prototype.
 */
export function shapeOf(value, depth = 0) {
  if (typeof value === 'function') {
    const prototype = Object.getOwnPropertyDescriptors(value.prototype ?? {});
    const own = Object.entries(prototype).filter(([key]) => key !== 'constructor');
    const isClass = /^class\b/.test(Function.prototype.toString.call(value)) || own.length > 0;
    const isGenerator = value.prototype && !('constructor' in prototype);
    return {
      kind: isClass && !isGenerator ? 'class' : 'function',
      name: value.name,
      arity: value.length,
      own: isClass ? own.map(([key, d]) => ({ name: key, call: typeof d.value === 'function' })) : [],
      members: membersOf(value, depth),
    };
  }
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    const members = membersOf(value, depth);
    const kind = Object.values(members).some((m) => m.kind !== 'value') ? 'object' : 'value';
    return { kind, name: '', members: kind === 'object' ? members : {} };
  }
  return { kind: 'value', name: '', members: {} };
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
