/** Programs that do something more, less or in another order, or that look at something else in the end. */

import { Likeness } from './likeness.mjs';
import { call, create, get, isData, local, renamed, typeOf, variables } from './program.mjs';
import { sites } from './values.mjs';

const MOST_STEPS = 9;
const MOST_BORROWED = 3; // steps taken over from a test at once

export class Sequences extends Likeness {
  /** A first program for each export and member, for those that no test calls. */
  basics() {
    const programs = [];
    const observe = (expr, steps = []) => programs.push({ steps, observe: expr, wait: false });
    for (const { expr, shape } of this.targets(this.file)) {
      const name = this.nameOf(expr);
      if (shape.kind === 'value') observe(expr);
      else if (expr.k === 'get' || shape.kind === 'object') observe(typeOf(expr));
      if (shape.kind === 'function') for (let i = 0; i < 6; i++) observe(call(expr, this.someArgs(name, i)));
      if (shape.kind === 'object') this.#changing(expr, shape, observe);
      if (shape.kind !== 'class') continue;
      const bind = name[0].toLowerCase() + name.slice(1);
      for (let i = 0; i < 3; i++) {
        const made = [{ bind, expr: create(expr, this.someArgs(`${name}.constructor`, i)), wait: false }];
        for (const m of this.membersOf(name)) {
          const of = m.isStatic ? expr : local(bind);
          observe(
            this.use(of, m, () => this.someArgs(`${name}.${m.name}`, i)),
            m.isStatic ? [] : made,
          );
        }
      }
    }
    return programs;
  }

  /** What the methods of an exported object do to it, seen on a copy. */
  #changing(expr, shape, observe) {
    const copy = this.copyOf(expr, shape);
    if (!copy) return;
    const made = { bind: 'copy', expr: copy.expr, wait: false };
    const cls = this.classOf(copy.expr, { steps: [] });
    const names = Object.entries(shape.members).filter(([, m]) => m.kind !== 'class');
    this.made.set(cls.name, names.map(([name, m]) => ({ name, call: m.kind === 'function', isStatic: false, makesOne: false })));
    for (const method of copy.methods) {
      for (let i = 0; i < 3; i++) {
        const act = call(get(local('copy'), method), this.someArgs(this.nameOf(get(expr, method)), i));
        observe(act, [made]);
        for (const field of copy.fields) observe(get(local('copy'), field), [made, { bind: null, expr: act, wait: false }]);
      }
    }
  }

  /** Arguments for a call: as the tests give them, the same but for one, or made up. */
  someArgs(key, optionalOnes = 1) {
    const params = this.params(key);
    const seen = [...(this.calls.get(key)?.values() ?? [])];
    const chance = this.random.next();
    if (seen.length && chance < 0.8) {
      const args = this.random.pick(seen);
      const i = this.random.below(args.length);
      const others = chance < 0.4 || !args.length || !isData(args[i]) ? [] : this.likelyFor(args[i], params[i]?.name);
      return others.length ? args.with(i, this.random.pick(others)) : args;
    }
    const needed = params.findLastIndex((p) => !p.optional) + 1;
    return params.slice(0, optionalOnes ? params.length : needed).map((p) => this.fresh(p));
  }

  /** One step more or less, another in its place, two the other way round. */
  otherSteps(program) {
    const { steps } = program;
    const found = [];
    for (const [i, step] of steps.entries()) {
      if (!step.bind) {
        found.push({ ...program, steps: steps.toSpliced(i, 1) }, { ...program, steps: steps.toSpliced(i, 0, step) });
        if (i && !steps[i - 1].bind) found.push({ ...program, steps: steps.with(i, steps[i - 1]).with(i - 1, step) });
        const { fn } = step.expr;
        const instead = fn?.k === 'get' && fn.of.k === 'var' ? this.#someCall(fn.of, program) : null;
        if (instead) found.push(this.#withStep({ ...program, steps: steps.toSpliced(i, 1) }, i, instead));
      }
      const cls = step.bind ? this.classOf(local(step.bind), program) : null;
      for (const member of cls ? this.members(cls) : []) {
        if (!member.call) continue;
        const expr = this.#someUse(local(step.bind), member, cls);
        found.push(this.#withStep(program, i + 1 + this.random.below(steps.length - i), expr));
        found.push(this.#withStep(program, steps.length, expr));
      }
    }
    found.push(...this.#afterOthers(program), this.#withBorrowed(program), this.#withBorrowed(program));
    return found.filter((other) => other && other.steps.length <= MOST_STEPS);
  }

  /** What a module keeps shows in a second call. */
  #afterOthers(program) {
    if (!this.knowledge.keepsState || program.steps.length > 2 || program.observe.k !== 'call') return [];
    const first = { bind: null, expr: program.observe, wait: program.wait };
    return sites({ ...program, steps: [] }, this)
      .filter(({ expr }) => expr.k === 'lit')
      .flatMap(({ expr, name, put }) => this.likelyFor(expr, name).map(put))
      .map((other) => ({ ...other, steps: [...program.steps, first] }));
  }

  /** A call of any method of what a variable holds; null where its class isn't known. */
  #someCall(of, program) {
    const cls = this.classOf(of, program);
    const methods = cls ? this.members(cls).filter((m) => m.call) : [];
    if (!methods.length) return null;
    return this.#someUse(of, this.random.pick(methods), cls);
  }

  #someUse(of, member, cls) {
    const own = member.name ? `${cls.name}.${member.name}` : cls.name;
    const key = cls.of ? this.nameOf(get(cls.of, member.name)) : own;
    return this.use(of, member, () => this.someArgs(key, this.random.below(2)));
  }

  /** What a call has returned: looked at by each of its members in turn. */
  looksAt(program) {
    const cls = this.classOf(program.observe, program);
    const bind = ['made', 'result'].find((name) => !program.steps.some((s) => s.bind === name));
    if (!cls || !bind) return [];
    const steps = [...program.steps, { bind, expr: program.observe, wait: program.wait }];
    return this.members(cls).map((m) => ({ steps, observe: this.#someUse(local(bind), m, cls), wait: false }));
  }

  #withStep(program, at, expr) {
    return this.#withSteps(program, at, [{ bind: null, expr, wait: false }]);
  }

  /** The program with some steps more; null where a variable that they name cannot be made. */
  #withSteps(program, at, added) {
    let steps = program.steps.slice(0, at);
    for (const step of added) {
      const supplied = this.#supplied(steps, step.expr);
      if (!supplied) return null;
      steps = [...supplied.steps, { ...step, expr: supplied.expr }];
    }
    steps.push(...program.steps.slice(at));
    const binds = steps.map((s) => s.bind).filter(Boolean);
    return new Set(binds).size === binds.length ? { ...program, steps } : null;
  }

  /** A few steps of a test, in a program that may have other things done before. */
  #withBorrowed(program) {
    if (!this.sequences.length) return null;
    const { steps } = this.random.pick(this.sequences);
    const from = this.random.below(steps.length);
    const some = steps.slice(from, from + 1 + this.random.below(MOST_BORROWED)).filter((s) => s.expr.k !== 'new');
    return this.#withSteps(program, this.random.below(program.steps.length + 1), some);
  }

  /**
   * The steps and the expr with every variable that the expr names made by one of the steps: a step that gives such a
   * value is named, or the step is added that makes it in a test. null where there is none.
   */
  #supplied(steps, expr, depth = 0) {
    let supplied = { steps, expr };
    for (const name of variables(expr)) {
      if (steps.some((s) => s.bind === name)) continue;
      const maker = this.makers.get(name);
      if (!maker || depth > 2) return null;
      const program = { steps: supplied.steps };
      const isSuch = ({ bind, expr: made }) =>
        maker.cls
          ? bind && this.classOf(local(bind), program)?.name === maker.cls
          : this.calleeKey(made, program) === maker.key;
      const at = supplied.steps.findLastIndex((s) => (s.expr.k === 'call' || s.expr.k === 'new') && isSuch(s));
      if (at >= 0) {
        const { bind } = supplied.steps[at];
        if (bind) supplied.expr = renamed(supplied.expr, new Map([[name, bind]]));
        else supplied.steps = supplied.steps.with(at, { ...supplied.steps[at], bind: name });
        continue;
      }
      const made = this.#supplied(supplied.steps, maker.step.expr, depth + 1);
      if (!made) return null;
      supplied = { ...supplied, steps: [...made.steps, { ...maker.step, expr: made.expr }] };
    }
    return supplied;
  }

  /** The same steps, then a look at something else; what was looked at becomes a step where it may change things. */
  otherLooks(program) {
    const { steps, observe, wait } = program;
    const found = observe.k === 'get' && observe.of.k === 'call' ? [{ ...program, observe: observe.of }] : [];
    for (const { bind } of steps) {
      const cls = bind ? this.classOf(local(bind), program) : null;
      for (const member of cls ? this.members(cls) : []) {
        const look = this.#someUse(local(bind), member, cls);
        const kept = observe.k === 'call' ? [...steps, { bind: null, expr: observe, wait }] : steps;
        for (const before of kept === steps ? [steps] : [kept, steps]) {
          const supplied = this.#supplied(before, look);
          if (supplied) found.push({ steps: supplied.steps, observe: supplied.expr, wait: false });
        }
      }
    }
    return found;
  }
}
