/** What is called and what is given: which function of the source an expr calls, whose members a value has. */

import { call, exported, get } from './program.mjs';

export class Callees {
  /** exports: file → name → shape, as the worker found them (shapes.mjs). */
  constructor(knowledge, exports, file) {
    Object.assign(this, { knowledge, exports, file });
    this.made = new Map(); // callee key with () → members of what it returns, as seen in runs
  }

  /** What can be called or looked at from outside of a file: [{ expr, shape }], members included. */
  *targets(file) {
    const within = function* (expr, shape) {
      yield { expr, shape };
      for (const [name, member] of Object.entries(shape.members)) yield* within(get(expr, name), member);
    };
    for (const [name, shape] of Object.entries(this.exports[file] ?? {})) yield* within(exported(file, name), shape);
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

  /** 'total', 'Cart.total', or 'counter()' for what `counter` returns: the name by which `functions` knows a callee. */
  calleeKey(expr, program) {
    if (expr.k === 'new') return expr.cls.k === 'global' ? null : `${this.nameOf(expr.cls)}.constructor`;
    const { fn } = expr;
    if (fn.k === 'get' && !this.shapeOf(fn)) {
      const cls = this.classOf(fn.of, program);
      return cls ? `${cls.name}.${fn.name}` : null;
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

  /** { name } of the class whose instance (or static side) `expr` is, or of what a function returns. */
  classOf(expr, program) {
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
    const own = functions.get(key) ?? functions.get(key?.replace(/^.*\.(?=[^.])/, ''));
    if (own || !key?.endsWith('.constructor')) return own?.params ?? [];
    return functions.get(key.slice(0, -'.constructor'.length))?.params ?? [];
  }

  /** What is known of an instance: [{ name, call, isStatic, makesOne }]. */
  membersOf(name) {
    const { classes } = this.knowledge;
    if (!classes.has(name)) {
      const shapes = Object.keys(this.exports).flatMap((file) => [...this.targets(file)]);
      const found = shapes.find(({ expr, shape }) => shape.kind === 'class' && this.nameOf(expr) === name);
      const own = found?.shape.own.filter((m) => !m.name.startsWith('_')) ?? [];
      if (found) classes.set(name, own.map((m) => ({ ...m, isStatic: false, makesOne: false })));
    }
    return this.made.get(name) ?? classes.get(name) ?? [];
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
