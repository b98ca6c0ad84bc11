/**
 * A program: what a test does before it asserts. Plain data, so that it can be sent, changed, measured and printed.
 *
 *   program    { steps: [{ bind: name | null, expr, wait }], observe: expr, wait }    wait: the value is awaited
 *   expr       lit v | list items | record entries | code text | var name | export file, name | global name
 *              | call fn, args | new cls, args | get of, name | spread of, as | spy of, text | typeof of: a callback `text` whose
 *              calls go into the list `of`
 *
 * Every expr is evaluated anew in each run: nothing is shared between two runs.
 */

export const lit = (v) => ({ k: 'lit', v });
export const list = (items) => ({ k: 'list', items });
export const record = (entries) => ({ k: 'record', entries });
export const code = (text) => ({ k: 'code', text });
export const local = (name) => ({ k: 'var', name });
export const exported = (file, name) => ({ k: 'export', file, name });
export const global = (name) => ({ k: 'global', name });
export const call = (fn, args) => ({ k: 'call', fn, args });
export const create = (cls, args) => ({ k: 'new', cls, args });
export const get = (of, name) => ({ k: 'get', of, name });
export const spread = (of, as) => ({ k: 'spread', of, as });
export const typeOf = (of) => ({ k: 'typeof', of });
export const spy = (of, text) => ({ k: 'spy', of, text });

/** The children of an expr, each with the way to an equal expr that holds another child in its place. */
export function children(expr) {
  switch (expr.k) {
    case 'list':
      return expr.items.map((child, i) => [child, (to) => ({ ...expr, items: expr.items.with(i, to) }), i]);
    case 'record':
      return expr.entries.map(([key, child], i) => [
        child,
        (to) => ({ ...expr, entries: expr.entries.with(i, [key, to]) }),
        key,
      ]);
    case 'call':
      return [
        [expr.fn, (to) => ({ ...expr, fn: to }), 'fn'],
        ...expr.args.map((child, i) => [child, (to) => ({ ...expr, args: expr.args.with(i, to) }), i]),
      ];
    case 'new':
      return [
        [expr.cls, (to) => ({ ...expr, cls: to }), 'cls'],
        ...expr.args.map((child, i) => [child, (to) => ({ ...expr, args: expr.args.with(i, to) }), i]),
      ];
    case 'get':
    case 'spread':
    case 'spy':
    case 'typeof':
      return [[expr.of, (to) => ({ ...expr, of: to }), 'of']];
    default:
      return [];
  }
}

export function* walk(expr) {
  yield expr;
  for (const [child] of children(expr)) yield* walk(child);
}

export function* walkProgram(program) {
  for (const step of program.steps) yield* walk(step.expr);
  yield* walk(program.observe);
}

/** The same expr with variables under other names. names: Map old → new. */
export function renamed(expr, names) {
  if (expr.k === 'var') return { ...expr, name: names.get(expr.name) ?? expr.name };
  return children(expr).reduce((whole, [child], i) => {
    const to = renamed(child, names);
    return to === child ? whole : children(whole)[i][1](to);
  }, expr);
}

/** The variables that an expr names, once each. */
export const variables = (expr) => [...new Set([...walk(expr)].filter((e) => e.k === 'var').map((e) => e.name))];

/** The exports that a program names, as `file` and `name`, once each. */
export function exportsOf(program) {
  const found = new Map();
  for (const e of walkProgram(program)) if (e.k === 'export') found.set(`${e.file} ${e.name}`, e);
  return [...found.values()];
}

/** The names of all that a program calls and looks at, in order. */
export const callsOf = (program) =>
  [...walkProgram(program)].map((e) => (e.k === 'export' || e.k === 'get' ? e.name : '')).join(' ');

/** Is there a `new Date()` in a program itself? */
export const asksClock = (program) =>
  [...walkProgram(program)].some((e) => e.k === 'new' && e.cls.name === 'Date' && !e.args.length);

export const isData = (expr) => expr.k === 'lit' || expr.k === 'list' || expr.k === 'record' || expr.k === 'code';

/** The value itself, where an expr is plain data without code; else undefined. */
export function plain(expr) {
  if (expr.k === 'lit') return expr.v;
  if (expr.k === 'list') return expr.items.map(plain);
  if (expr.k === 'record') return Object.fromEntries(expr.entries.map(([key, e]) => [key, plain(e)]));
  return undefined;
}

export class Unprintable extends Error {}

/** The expr of a value that a run gave. Throws Unprintable where no short literal says it. */
export function describe(value, room = { left: 80 }, depth = 0) {
  if (depth > 6 || --room.left < 0) throw new Unprintable('too large to read');
  const inner = (v) => describe(v, room, depth + 1);
  if (typeof value === 'string' && value.length > 300) throw new Unprintable('a long string');
  if (value === null || ['undefined', 'boolean', 'number', 'string', 'bigint'].includes(typeof value))
    return lit(value);
  if (typeof value === 'symbol' && Symbol.keyFor(value) !== undefined)
    return call(get(global('Symbol'), 'for'), [lit(Symbol.keyFor(value))]);
  if (typeof value !== 'object') throw new Unprintable(`a ${typeof value}`);
  if (Array.isArray(value)) {
    if (value.length > room.left) throw new Unprintable('a long array');
    const items = list(Array.from(value, inner));
    const more = Object.entries(value).slice(Object.keys(Array.from(value)).length);
    const isMore = Object.keys(value).length > value.length && more.length;
    const extra = isMore ? [record(more.map(([key, v]) => [key, inner(v)]))] : [];
    return isMore ? call(get(global('Object'), 'assign'), [items, ...extra]) : items;
  }
  if (ArrayBuffer.isView(value) && 'length' in value) {
    if (value.length > room.left) throw new Unprintable('a long array');
    const bytes = list([...value].map(lit));
    if (globalThis.Buffer?.isBuffer(value)) return call(get(global('Buffer'), 'from'), [bytes]);
    return create(global(value.constructor.name), [bytes]);
  }
  if (value instanceof Date) {
    const time = value.getTime();
    return create(global('Date'), [lit(Number.isNaN(time) ? NaN : value.toISOString())]);
  }
  if (value instanceof Map || value instanceof Set) {
    return create(global(value instanceof Map ? 'Map' : 'Set'), value.size ? [inner([...value])] : []);
  }
  if (value instanceof RegExp) return code(String(value));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw new Unprintable(`a ${prototype.constructor?.name}`);
  return record(Object.entries(value).map(([key, v]) => [key, inner(v)]));
}

/**
 * Is an outcome one that a test may assert? What only a wrong input gives is no behaviour; NaN may be one, as the last
 * resort.
 */
export function isPresentable({ kind, native, message, expr }, isLastResort = false) {
  if (kind === 'throw') return !native && !BLUNDER.test(message);
  if (kind !== 'value') return false;
  return [...walk(expr)].every(
    (e) => (isLastResort || !Number.isNaN(e.v)) && !(typeof e.v === 'string' && BLUNDER.test(e.v)),
  );
}

const BLUNDER = /\b(NaN|undefined)\b|\[object /;
const WIDTH = 100;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const KEY = /^([A-Za-z_$][\w$]*|0|[1-9]\d{0,8})$/; // that stands without quotes

export function quote(text, mark = "'") {
  const body = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  const other = mark === "'" ? '"' : "'";
  const use = body.includes(mark) && !body.includes(other) ? other : mark;
  return use + body.replaceAll(use, `\\${use}`) + use;
}

function literal(v, mark) {
  if (typeof v === 'string') return quote(v, mark);
  if (typeof v === 'bigint') return `${v}n`;
  return Object.is(v, -0) ? '-0' : String(v);
}

/**
 * Source text of an expr. names: (export expr) → the identifier it is imported as. Lists and records that pass the
 * line's width from `column` on are broken, one item a line.
 */
export function print(expr, { names = (e) => e.name, mark = "'", indent = '', column = 0, dangle = true, dangleCalls = dangle } = {}) {
  const options = { names, mark, indent, dangle, dangleCalls };
  const flat = (e) => print(e, { ...options, column: -Infinity });
  switch (expr.k) {
    case 'lit':
      return literal(expr.v, mark);
    case 'code':
      return expr.text;
    case 'var':
    case 'global':
      return expr.name;
    case 'export':
      return names(expr);
    case 'get':
      return (
        receiver(expr.of, flat(expr.of)) +
        (IDENTIFIER.test(expr.name) ? `.${expr.name}` : `[${literal(expr.name, mark)}]`)
      );
    case 'await':
      return `await ${print(expr.of, { ...options, column })}`;
    case 'async arrow':
      return `async () => ${print(expr.of, { ...options, column })}`;
    case 'function':
      return `function () { return ${flat(expr.of)}${expr.end} }`;
    case 'arrow':
      return `() => ${print(expr.of, { ...options, column })}`;
    case 'typeof':
      return `typeof ${flat(expr.of)}`;
    case 'spy':
      return `(...args) => {\n${indent}  calls.push(args);\n${spied(expr.text, indent)}${indent}}`;
    case 'spread':
      return expr.as === 'list' ? `[...${flat(expr.of)}]` : `{ ...${flat(expr.of)} }`;
    case 'call':
    case 'new': {
      const head = expr.k === 'new' ? `new ${flat(expr.cls)}` : receiver(expr.fn, flat(expr.fn));
      return (
        head +
        enclose('(', expr.args, (e, at) => print(e, { ...options, ...at }), ')', head.length + column, options, '')
      );
    }
    case 'list':
      return enclose('[', expr.items, (e, at) => print(e, { ...options, ...at }), ']', column, options, '');
    case 'record':
      return enclose(
        '{',
        expr.entries,
        ([key, e], at) => {
          const head = `${KEY.test(key) ? key : literal(key, mark)}: `;
          return head + print(e, { ...options, ...at, column: at.column + head.length });
        },
        '}',
        column,
        options,
        ' ',
      );
    default:
      throw new Error(`no such expr: ${expr.k}`);
  }
}

/** What a spy does after it has noted its call: as the callback that it stands for. */
function spied(text, indent) {
  if (text === '() => {}') return '';
  const [, result] = /^\(\) => ([^{(].*)$/.exec(text) ?? [];
  return `${indent}  return ${result ?? `(${text})(...args)`};\n`;
}

function enclose(open, items, show, close, column, { indent, dangle, dangleCalls }, pad) {
  if (!items.length) return open + close;
  const texts = items.map((item) => show(item, { column: -Infinity, indent }));
  const flat = open + pad + texts.join(', ') + pad + close;
  if (column + flat.length <= WIDTH || column === -Infinity) return flat;
  if (open === '(') {
    // As formatters do: only the last argument is broken, where it is a list or a record and the rest fits.
    const before =
      open +
      texts
        .slice(0, -1)
        .map((text) => `${text}, `)
        .join('');
    const broken = /^[[{]/.test(texts.at(-1)) && show(items.at(-1), { column: WIDTH, indent });
    if (broken && column + before.length < WIDTH - 1) return before + broken + close;
  }
  const deeper = `${indent}  `;
  const lines = items.map((item) => deeper + show(item, { column: deeper.length + 1, indent: deeper }));
  return `${open}\n${lines.join(',\n')}${(open === '(' ? dangleCalls : dangle) ? ',' : ''}\n${indent}${close}`;
}

const receiver = (expr, text) =>
  expr.k === 'code' || (expr.k === 'lit' && typeof expr.v === 'number') ? `(${text})` : text;

const identities = new WeakMap(); // programs near each other share most of their exprs

/** One line that is the same for equal exprs only. */
export function identity(expr) {
  const known = identities.get(expr);
  if (known !== undefined) return known;
  const all = (exprs) => exprs.map(identity).join();
  const text = {
    lit: () => literal(expr.v),
    code: () => expr.text,
    var: () => `$${expr.name}`,
    global: () => expr.name,
    export: () => `${expr.file}:${expr.name}`,
    get: () => `${identity(expr.of)}.${expr.name}`,
    typeof: () => `typeof ${identity(expr.of)}`,
    spy: () => `spy ${identity(expr.of)} ${expr.text}`,
    spread: () => `...${expr.as} ${identity(expr.of)}`,
    call: () => `${identity(expr.fn)}(${all(expr.args)})`,
    new: () => `new ${identity(expr.cls)}(${all(expr.args)})`,
    list: () => `[${all(expr.items)}]`,
    record: () => `{${expr.entries.map(([key, e]) => `${key}:${identity(e)}`)}}`,
  }[expr.k]();
  identities.set(expr, text);
  return text;
}

/** One line that is the same for equal programs only. */
export function fingerprint(program) {
  const lines = program.steps.map((s) => `${s.bind ?? ''}=${s.wait ? 'await ' : ''}${identity(s.expr)}`);
  return [...lines, (program.wait ? 'await ' : '') + identity(program.observe)].join('; ');
}
