/** Values to try, and what is known of callees: from the existing tests and the source. A name (of a parameter or a key)
 * draws values that were seen under that name.
 */

import { Callees } from './callees.mjs';
import {
  children,
  code,
  create,
  exported,
  global,
  identity,
  isData,
  lit,
  list,
  local,
  record,
  variables,
  walkProgram,
} from './program.mjs';
import { nearStrings, reshaped } from './strings.mjs';

const CALLBACKS = ['() => true', '() => false', '(x) => x', '() => {}'].map(code);
const MOST_KNOWN = 40; // strings of the source tried in place of one
const MOST_SIBLINGS = 8;
const DATES = ['2024-01-31T00:00:00.000Z', '2024-02-29T23:59:59.999Z', '1999-12-31T12:00:00.000Z'];
export const NONSENSE = [undefined, null, '', 0, 'x', true, -1, 0.5].map(lit);

export const kindOf = (expr) => (expr.k !== 'lit' ? expr.k : expr.v === null ? 'null' : typeof expr.v);

export class Values extends Callees {
  constructor(knowledge, seeds, exports, file, random) {
    super(knowledge, exports, file);
    this.random = random;
    this.pools = new Map(); // name → fingerprint → expr
    this._kinds = new Map();
    this.calls = new Map(); // function or Class.method → fingerprint → arguments that the tests give
    for (const [name, values] of knowledge.named)
      for (const value of values) this.#pool(name).set(identity(lit(value)), lit(value));
    this.likely = new Map(); // as pools, from the tests alone
    this.seen = new Map(); // every literal that the tests give, whatever its name
    this.makers = new Map(); // name of a variable → the step that makes it in a test: { step, key, cls }
    this.sequences = seeds.filter(({ steps }) => steps.length > 1);
    this.seeds = seeds;
    this.learnSeeds();
    this.numbers = [...new Set([0, 1, 2, -1, 10, 100, ...[...knowledge.numbers].flatMap((n) => [n, n + 1, n - 1])])];
    this.strings = [
      ...new Set([
        '',
        'a',
        'A',
        ' ',
        'a b',
        ...knowledge.strings,
        ...[...knowledge.strings].map((s) => s.toUpperCase()),
        ...[...knowledge.strings].map((s) => s.toLowerCase()),
      ]),
    ];
  }

  /** What the tests give, by the names it goes by as far as these are known. */
  learnSeeds() {
    this._texts = null;
    for (const program of this.seeds) {
      known.delete(program);
      this.#learn(program);
    }
  }

  /** Strings that were worked out for one mutant may serve another. */
  suggest(strings) {
    this.strings = [...new Set([...this.strings, ...strings])];
    this._texts = null;
  }

  #pool(name, pools = this.pools) {
    if (!pools.has(name)) pools.set(name, new Map());
    return pools.get(name);
  }

  #learn(program) {
    for (const { expr, name } of sites(program, this)) {
      const isMade = expr.k === 'new' && expr.cls.k === 'global' && !variables(expr).length; // such as a date
      if (!(isData(expr) || isMade) || name === null) continue;
      this.#pool(name).set(identity(expr), expr);
      this.#pool(name, this.likely).set(identity(expr), expr);
      if (expr.k === 'lit') this.seen.set(identity(expr), expr);
    }
    for (const expr of walkProgram(program)) {
      const key = expr.k === 'call' || expr.k === 'new' ? this.calleeKey(expr, program) : null;
      if (key) this.#pool(key, this.calls).set(identity(expr), expr.args);
    }
    for (const step of program.steps) {
      if (!step.bind || this.makers.has(step.bind)) continue;
      const cls = this.classOf(local(step.bind), program)?.name ?? null;
      const key = step.expr.k === 'call' ? this.calleeKey(step.expr, program) : null;
      if (cls || key) this.makers.set(step.bind, { step, key, cls });
    }
  }

  // --- values -------------------------------------------------------------------------------------------------------

  /** A value for a parameter or key: seen under its name, else made from its kind. */
  fresh({ name, kind = null, keys = [] }, depth = 0) {
    const pool = this.#seenUnder(name);
    if (pool.length && this.random.next() < 0.7) {
      const seen = this.random.pick(pool);
      return this.random.next() < 0.6 || !isData(seen) ? seen : (this.random.pick(this.nearTo(seen, name)) ?? seen);
    }
    const cls = [...this.knowledge.classes.keys()].find((c) => c.toLowerCase() === String(name).toLowerCase());
    if (cls && this.exports[this.file]?.[cls]?.kind === 'class') return create(exported(this.file, cls), []);
    const within = keys.length ? keys : [...(this.keysOf.get(name) ?? [])];
    switch (kind ?? this.#kindOfKey(name) ?? (within.length ? 'record' : null)) {
      case 'number':
        return this.literal('number', this.numbers);
      case 'string':
        return this.literal('string', this.strings);
      case 'boolean':
        return lit(this.random.next() < 0.5);
      case 'function':
        return this.random.pick(CALLBACKS);
      case 'date':
        return create(global('Date'), [lit(this.random.pick(DATES))]);
      case 'map':
      case 'set':
        return create(global(kind === 'map' ? 'Map' : 'Set'), []);
      case 'pattern':
        return code('/a+/');
      case 'list': {
        const element = { name: elementOf(name) };
        return list(Array.from({ length: depth > 2 ? 0 : this.random.below(4) }, () => this.fresh(element, depth + 1)));
      }
      case 'record':
        return record(
          within
            .filter(() => this.random.next() < 0.7)
            .map((key) => [key, depth > 2 ? lit(1) : this.fresh({ name: key }, depth + 1)]),
        );
      default:
        return this.random.next() < 0.5 ? this.literal('number', this.numbers) : this.literal('string', this.strings);
    }
  }

  /** What was seen under a name; for the items of a list that nobody gives, what is looked for in it. */
  #seenUnder(name) {
    const pool = [...(this.pools.get(name)?.values() ?? [])];
    if (pool.length || !String(name).endsWith('[]')) return pool;
    const wanted = [...(this.knowledge.wanted.get(name.slice(0, -2)) ?? [])];
    return wanted.flatMap((other) => [...(this.pools.get(other)?.values() ?? [])]);
  }

  /** One that the tests give somewhere, or one that the source suggests. */
  literal(kind, suggested) {
    const seen = [...this.seen.values()].filter((e) => kindOf(e) === kind);
    return seen.length && this.random.next() < 0.5 ? this.random.pick(seen) : lit(this.random.pick(suggested));
  }

  /** Exprs to stand where `expr` stands. */
  alternatives(expr, name) {
    return [...this.likelyFor(expr, name), ...this.nearTo(expr, name)];
  }

  /** Those that a reader of the tests would think of: seen under the same name, flipped, one item more or less. */
  likelyFor(expr, name) {
    const pool = [...(this.pools.get(name)?.values() ?? [])];
    switch (kindOf(expr)) {
      case 'number':
        return [...pool, lit(expr.v + 1), lit(expr.v - 1), lit(0)];
      case 'string':
        return [...pool, ...this.siblings(expr.v).map(lit), lit('')];
      default:
        return [...pool, ...this.nearTo(expr, name)];
    }
  }

  nearTo(expr, name) {
    switch (kindOf(expr)) {
      case 'number': {
        const n = expr.v;
        return [
          ...new Set([n + 1, n - 1, 0, 1, -n, n * 2, n * 10, n * 1000, Math.trunc(n / 2), n + 0.5, ...this.numbers]),
        ].map(lit);
      }
      case 'string':
        return [...this.#someStrings(), ...this.nearStrings(expr.v)].map(lit);
      case 'boolean':
        return [lit(!expr.v)];
      case 'list':
        return this.#nearLists(expr, name);
      case 'record':
        return [
          ...expr.entries.map((_, i) => record(expr.entries.toSpliced(i, 1))),
          ...this.#renamedKeys(expr),
          ...[...this.missingKeys(expr, name), ...this.#strangeKeys(expr)].map((key) =>
            record([...expr.entries, [key, this.fresh({ name: key, kind: this.#kindOfKey(key) })]]),
          ),
        ];
      case 'code':
        return CALLBACKS;
      default:
        return [lit(0), lit(1), lit('a'), lit(true)];
    }
  }

  /** Not all of them: what is made of a string itself would be lost among them. */
  #someStrings() {
    if (this.strings.length <= MOST_KNOWN) return this.strings;
    return Array.from({ length: MOST_KNOWN }, () => this.random.pick(this.strings));
  }

  /** Texts that the source has beside one: where it knows that one, it may treat these in another way. */
  siblings(s) {
    const near = this.knowledge.groups.filter((group) => group.includes(s) && group.length <= MOST_SIBLINGS);
    return [...new Set(near.flat())].filter((other) => other !== s);
  }

  reshaped(s) {
    return reshaped(s, this.random, this.texts);
  }

  nearStrings(s) {
    return nearStrings(s, this.random, this.texts);
  }

  /** The strings that the source suggests and those that the tests give. */
  get texts() {
    this._texts ??= [...new Set([...this.strings, ...[...this.seen.values()].map((e) => e.v).filter((v) => typeof v === 'string')])];
    return this._texts;
  }

  #nearLists({ items }, name) {
    const found = [list([]), create(global('Array'), [lit(items.length || 1)])]; // one whose items are holes
    for (const [i, item] of items.slice(0, 5).entries()) {
      found.push(list(items.toSpliced(i, 1)), list([...items, item]), list(items.toSpliced(i, 0, item)));
      if (i) found.push(list(items.with(i, items[i - 1]).with(i - 1, item)));
    }
    if (items.length > 1) found.push(list(items.toReversed()));
    const [element] = items;
    if (element) {
      const change = this.random.pick(this.alternativesWithin(element, elementOf(name)));
      if (change) found.push(list([...items, change]), list([change, ...items]));
    } else found.push(list([this.fresh({ name: elementOf(name) })]));
    return found;
  }

  /** As `alternatives`, one level down as well. */
  alternativesWithin(expr, name) {
    const below = children(expr).flatMap(([child, put, key]) =>
      isData(child) ? this.alternatives(child, expr.k === 'list' ? elementOf(name) : key).map(put) : [],
    );
    return [...this.alternatives(expr, name), ...below];
  }

  missingKeys(expr, name) {
    const known = new Set(this.keysOf.get(name) ?? []);
    for (const [key] of expr.entries) known.delete(key);
    return [...known];
  }

  /** The same with one key called otherwise: an object may be a dictionary. */
  #renamedKeys({ entries }) {
    if (!entries.length) return [];
    const i = this.random.below(entries.length);
    const [key, value] = entries[i];
    const names = [this.random.pick(this.nearStrings(key)), this.random.pick(this.texts), `${key}.${this.random.pick(entries)[0]}`];
    const isFree = (name) => name && name !== '__proto__' && entries.every(([own]) => own !== name);
    return names.filter(isFree).map((name) => record(entries.with(i, [name, value])));
  }

  /** Two keys that the source reads from something, whatever that is called there. */
  #strangeKeys({ entries }) {
    this._allKeys ??= [...new Set([...this.knowledge.keys.values()].flatMap((keys) => [...keys].map(String)))];
    const keys = this._allKeys.filter((key) => entries.every(([own]) => own !== key));
    return keys.length ? [this.random.pick(keys), this.random.pick(keys)] : [];
  }

  #kindOfKey(key) {
    const [seen] = this.#seenUnder(key);
    if (seen?.k === 'new') return seen.cls.name.toLowerCase();
    if (seen) return seen.k === 'code' ? 'function' : kindOf(seen);
    const asked = [...(this.knowledge.asked.get(key) ?? [])];
    return this.knowledge.kinds.get(key) ?? (asked.length ? this.random.pick(asked) : null);
  }

  /** Parameter or key name → keys read from such an object in the source, or given in the tests. */
  get keysOf() {
    if (this._keysOf) return this._keysOf;
    this._keysOf = new Map();
    const add = (name, keys) => this._keysOf.set(name, new Set([...(this._keysOf.get(name) ?? []), ...keys]));
    for (const { params } of this.knowledge.functions.values()) {
      for (const p of params) {
        add(p.name, p.keys);
      }
    }
    for (const [name, keys] of this.knowledge.keys) {
      add(name, keys);
      add(elementOf(`${name}s`), keys); // what an item of a list is called in the source: product, products
    }
    for (const [name, pool] of this.pools)
      for (const e of pool.values())
        if (e.k === 'record')
          add(
            name,
            e.entries.map(([key]) => key),
          );
    return this._keysOf;
  }
}

/** The name that a list's items go by. */
export const elementOf = (name) => (name === null || name === undefined ? null : `${name}[]`);

const known = new WeakMap(); // program → its sites: they are asked for several times

/** Every expr of a program with the name it goes by and the way to an equal program with another in its place. */
export function sites(program, variations) {
  if (known.has(program)) return known.get(program);
  const found = [];
  for (const [i, step] of program.steps.entries())
    visit(step.expr, null, (expr) => ({ ...program, steps: program.steps.with(i, { ...step, expr }) }));
  visit(program.observe, null, (observe) => ({ ...program, observe }));
  known.set(program, found);
  return found;

  function visit(expr, name, put) {
    found.push({ expr, name, put });
    const callee = expr.k === 'call' || expr.k === 'new' ? variations.calleeKey(expr, program) : null;
    const params = callee ? variations.params(callee) : [];
    const given = (at) => params[at]?.name ?? (callee && Number.isInteger(at) ? `${callee}#${at}` : null);
    for (const [child, replace, key] of children(expr)) {
      const inner = expr.k === 'record' ? key : expr.k === 'list' ? elementOf(name) : given(key);
      visit(child, inner, (to) => put(replace(to)));
    }
  }
}
