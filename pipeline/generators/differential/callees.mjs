/** What is called and what is given: which function of the source an expr calls, whose members a value has. */

import { call, exported, get, global, record } from './program.mjs';

export class Callees {
  /** exports: file → name → shape, as the worker found them (shapes.mjs). */
  constructor(knowledge, exports, file) {
    Object.assign(this, { knowledge, exports, file });
    this.made = new Map(); // callee key with () → members of what it returns, as seen in runs
    this._classes = null; // name → shape
    this._members = new Map();
    for (const { expr, shape } of this.#everything())
      if (shape.kind === 'function' && /^[A-Z]/.test(this.nameOf(expr)) && knowledge.fields.has(this.nameOf(expr)))
        shape.kind = 'class'; // one that keeps all it has in fields
  }

  /** What can be called or looked at from outside of a file: [{ expr, shape }], members included. */
  *targets(file) {
    const within = function* (expr, shape) {
      yield { expr, shape };
      for (const [name, member] of Object.entries(shape.members)) yield* within(get(expr, name), member);
    };
    for (const [name, shape] of Object.entries(this.exports[file] ?? {})) yield* within(exported(file, name), shape);
  }

  *#everything() {
    for (const file of Object.keys(this.exports)) yield* this.targets(file);
  }

  /** The shape of what an expr names; undefined where it is the value of a call. */
  shapeOf(expr) {
    if (expr.k === 'export') return this.exports[expr.file]?.[expr.name];
    return expr.k === 'get' ? this.shapeOf(expr.of)?.members[expr.name] : undefined;
  }

  /** The name by which the source knows what an expr names: its own, else that of the export or member. */
  nameOf(expr) {
    const shape = this.shapeOf(expr);
    if (!shape) return null;
    const known = (name) => name && (this.knowledge.functions.has(name) || this.knowledge.classes.has(name));
    if (known(shape.name)) return shape.name;
    const names = expr.name === 'default' ? ['default', 'exports'] : [expr.name];
    return names.find(known) ?? (shape.name || expr.name);
  }

  /** What an expr is a copy of, `Object.assign({}, of, ...)`, as `copyOf` makes it; null where it is none. */
  #copied({ k, fn, args }) {
    const isCopy = k === 'call' && fn.k === 'get' && fn.of.k === 'global' && fn.name === 'assign' && args[1];
    return isCopy && this.shapeOf(args[1])?.kind === 'object' ? args[1] : null;
  }

  /**
   * An exported object whose methods change it, with fields of its own: what is done to it is seen nowhere else. null where
   * no method does: { expr, methods: their names, fields }.
   */
  copyOf(expr, { members }) {
    const all = Object.entries(members);
    const methods = all.filter(([name, m]) => m.kind === 'function' && this.knowledge.fields.has(this.nameOf(get(expr, name))));
    const fields = all.filter(([, m]) => m.init).map(([name, m]) => [name, m.init]);
    if (!methods.length || !fields.length) return null;
    const copy = call(get(global('Object'), 'assign'), [record([]), expr, record(fields)]);
    return { expr: copy, methods: methods.map(([name]) => name), fields: fields.map(([name]) => name) };
  }

  /** 'total', 'Cart.total', or 'counter()' for what `counter` returns: the name by which `functions` knows a callee. */
  calleeKey(expr, program) {
    if (expr.k === 'new') return expr.cls.k === 'global' ? null : `${this.nameOf(expr.cls)}.constructor`;
    const { fn } = expr;
    if (fn.k === 'get' && !this.shapeOf(fn)) {
      const cls = this.classOf(fn.of, program);
      return cls?.of ? this.nameOf(get(cls.of, fn.name)) : cls ? `${cls.name}.${fn.name}` : null;
    }
    if (fn.k === 'export' || fn.k === 'get') return this.nameOf(fn);
    const maker = this.makerOf(fn, program);
    return maker ? `${maker}()` : null;
  }

  /** The key of the call that gives an expr its value; null where none does. */
  makerOf(expr, program) {
    const made = expr.k === 'var' ? program.steps.find((s) => s.bind === expr.name)?.expr : expr;
    return made?.k === 'call' ? this.calleeKey(made, program) : null;
  }

  /** { name } of the class whose instance (or static side) `expr` is, or of what a function returns; of: what it copies. */
  classOf(expr, program) {
    const of = this.#copied(expr);
    if (of) return { name: `copy of ${of.file ?? ''} ${this.nameOf(of)}`, of };
    if (this.shapeOf(expr)) return this.isClass(expr) ? { name: this.nameOf(expr) } : null;
    if (expr.k === 'new') return this.isClass(expr.cls) ? { name: this.nameOf(expr.cls) } : null;
    if (expr.k === 'call') {
      const key = this.calleeKey(expr, program);
      if (key && this.made.has(`${key}()`)) return { name: `${key}()` };
      if (this.isClass(expr.fn)) return { name: this.nameOf(expr.fn) }; // one that needs no `new`
      const cls = expr.fn.k === 'get' ? this.classOf(expr.fn.of, program) : null;
      const member = cls && this.membersOf(cls.name).find((m) => m.name === expr.fn.name);
      return !member || member.makesOne ? cls : null; // a chained call, or a factory
    }
    if (expr.k !== 'var') return null;
    const made = program.steps.find((s) => s.bind === expr.name)?.expr;
    return made ? this.classOf(made, program) : null;
  }

  /** Notes what a call was seen to return. */
  learnMade(program, members) {
    const key = this.makerOf(program.observe, program);
    if (!key || this.made.has(`${key}()`)) return;
    this.made.set(`${key}()`, members);
    this.learnSeeds(); // their calls of these members have a name now
  }

  /** Is an expr the value of a call that is known from runs alone, of no class of the source? */
  isMade(expr, program) {
    const key = this.makerOf(expr, program);
    return Boolean(key) && this.made.has(`${key}()`);
  }

  isClass(expr) {
    return this.shapeOf(expr)?.kind === 'class';
  }

  params(key) {
    const { functions } = this.knowledge;
    const [, name, member] = /^(.*)\.([^.]+)$/.exec(key ?? '') ?? [null, key, ''];
    const inherited = () => this.#bases(name).map((base) => functions.get(`${base}.${member}`)).find(Boolean);
    const own = functions.get(key) ?? inherited() ?? functions.get(member);
    if (own || member !== 'constructor') return own?.params ?? [];
    return functions.get(name)?.params ?? [];
  }

  #shapeOfClass(name) {
    if (!this._classes) {
      const all = [...this.#everything()].filter(({ shape }) => shape.kind === 'class').toReversed();
      this._classes = new Map(all.map(({ expr, shape }) => [this.nameOf(expr), shape])); // of two, the first
    }
    return this._classes.get(name);
  }

  /** The names of the classes that a class inherits from, the nearest first. */
  #bases(name) {
    const bases = this.#shapeOfClass(name)?.bases ?? [];
    const { parents } = this.knowledge;
    for (let at = parents.get(name); !bases.length && at && !bases.includes(at); at = parents.get(at)) bases.push(at);
    return bases;
  }

  /** What is known of an instance, inherited or its own: [{ name, call, isStatic, makesOne }]. */
  membersOf(name) {
    if (this.made.has(name)) return this.made.get(name);
    if (!this._members.has(name)) {
      const { classes, fields } = this.knowledge;
      const found = new Map();
      const add = (m) => m.name.startsWith('_') || found.has(m.name) || found.set(m.name, { isStatic: false, makesOne: false, ...m });
      for (const cls of [name, ...this.#bases(name)]) {
        for (const member of classes.get(cls) ?? []) found.has(member.name) || found.set(member.name, member);
        for (const field of this.#shapeOfClass(name) ? (fields.get(cls) ?? []) : []) add({ name: field, call: false });
      }
      for (const member of this.#shapeOfClass(name)?.own ?? []) add(member);
      this._members.set(name, [...found.values()]);
    }
    return this._members.get(name);
  }

  members(cls) {
    return this.membersOf(cls.name).filter((m) => !m.isStatic);
  }

  /** The expr that looks at a member, or calls it; the member without a name is the function itself. */
  use(of, { name, call: isMethod }, args) {
    if (name === '') return call(of, args());
    return isMethod ? call(get(of, name), args()) : get(of, name);
  }
}
