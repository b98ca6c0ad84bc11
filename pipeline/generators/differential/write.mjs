/** A program and what it gives, as the text of a test: title, statement, imports. */

import path from 'node:path';

import { assertion } from './assertions.mjs';
import { children, exported, exportsOf, isData, print, quote, renamed, walkProgram } from './program.mjs';
import { statement } from './style.mjs';

const TITLE = 100; // longest title
const RESERVED =
  /^(break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false|finally|for|function|if|import|in|instanceof|let|new|null|package|private|public|return|static|super|switch|this|throw|true|try|typeof|var|void|while|with|yield|await)$/;
const SHORT = 32; // longest literal in one

export class Writer {
  /** write: the test file's path in the project; style: as readTests found it; taken: titles that exist there. */
  constructor(write, style, variations, taken) {
    Object.assign(this, { write, style, variations });
    this.taken = new Set(taken);
  }

  /** { title, code, imports }; isBare: that it does not throw is asserted too: what is thrown would not say whose it is. */
  test(program, outcome, isBare = false) {
    const { mark, call, isArrow, param, declare, dangle, dangleCalls, names: reserved } = this.style;
    const taken = this.#takenApart(program);
    const { names, imports } = this.#imports(taken);
    const renamed = withoutClashes(taken, new Set([...names.values(), ...reserved]));
    const options = { names: (e) => names.get(`${e.file} ${e.name}`), mark, indent: '  ', column: 2, dangle, dangleCalls };
    const show = (expr) => this.#statement(print(expr, options));
    const lines = renamed.steps.map(({ bind, expr, wait }) => {
      const value = wait ? { k: 'await', of: expr } : expr;
      const bound = bind && `${declare} ${bind} = ${print(value, { ...options, column: 11 + bind.length })}`;
      return bind ? this.#statement(bound) : show(value);
    });
    lines.push(...assertion(this.style, renamed, outcome, isBare).map(show));
    const isAsync = renamed.wait || renamed.steps.some((s) => s.wait);
    if (this.style.library === 'tape' && !isAsync) lines.push(this.#statement(`${param}.end()`));
    const title = this.#title(program, outcome);
    const head = isArrow ? `(${param ?? ''}) => {` : `function (${param ?? ''}) {`;
    const first = `${call}(${quote(title, mark)}, ${isAsync ? 'async ' : ''}${head}`;
    const code = [first, ...lines, `})${this.style.semi ? ';' : ''}`].join('\n');
    return { title, code: this.#indented(code), imports };
  }

  /** Without semicolons, a line that could go on from the one before begins with one. */
  #statement(text) {
    return this.style.semi ? `  ${text};` : `  ${/^[([`/+-]/.test(text) ? ';' : ''}${text}`;
  }

  /** The steps of two spaces that it was printed with as those of the house; not where a string may hold lines. */
  #indented(code) {
    const { indent } = this.style;
    return code.includes('`') ? code : code.replace(/^( {2})+/gm, (spaces) => indent.repeat(spaces.length / 2));
  }

  /** One statement a name: two tests' imports can then be put together line by line. */
  #imports(program) {
    const { mark } = this.style;
    const names = new Map();
    const imports = [...this.style.imports];
    for (const { file, name } of exportsOf(program)) {
      const base = this.#localName(file, name);
      let alias = base;
      for (let n = 2; [...names.values()].includes(alias); n++) alias = `${base}${n}`;
      names.set(`${file} ${name}`, alias);
      imports.push(statement(this.style, alias, this.#specifier(file), name));
    }
    return { names, imports: imports.sort() };
  }

  /** The same program where members of a module are names of their own, as the tests beside it take them. */
  #takenApart(program) {
    const apart = (expr) =>
      this.#isTakenApart(expr)
        ? exported(expr.of.file, expr.name)
        : children(expr).reduce((whole, [child], i) => {
            const to = apart(child);
            return to === child ? whole : children(whole)[i][1](to);
          }, expr);
    const steps = program.steps.map((step) => ({ ...step, expr: apart(step.expr) }));
    return { ...program, steps, observe: apart(program.observe) };
  }

  #isTakenApart({ k, of, name }) {
    const local = k === 'get' && of.k === 'export' && of.name === 'default' && this.style.naming.get(of.file)?.local;
    if (!local || local.has('default')) return false;
    return (
      local.has(name) || (this.style.syntax === 'require' && /^[A-Za-z_$][\w$]*$/.test(name) && !RESERVED.test(name))
    );
  }

  /** How the tests name a module, seen from where the new ones will stand. */
  #specifier(file) {
    const here = path.posix.dirname(this.write);
    const known = this.style.naming.get(file);
    if (known && (known.folder === here || !known.specifier.startsWith('.'))) return known.specifier;
    const there = known ? path.posix.join(known.folder, known.specifier) : file;
    const relative = path.posix.relative(here, there);
    if (relative === '') return '.';
    const url = /^\.\.?(\/|$)/.test(relative) ? relative : `./${relative}`;
    return known ? url : url.replace(/[%#?]/g, encodeURIComponent);
  }

  #localName(file, name) {
    if (name !== 'default') return name;
    const theirs = this.style.naming.get(file)?.local.get('default');
    if (theirs) return theirs;
    const stem = path.posix.basename(file).replace(/\.\w+$/, '');
    return stem.replace(/\W+(\w)/g, (_, c) => c.toUpperCase());
  }

  // --- titles -------------------------------------------------------------------------------------------------------

  /** The first that fits in a line and is not taken: what it is, what it gives, and when, in as much detail as fits. */
  #title(program, outcome) {
    const { name, condition } = this.#subject(program);
    const results = [this.#result(program, outcome, true), this.#result(program, outcome, false)];
    const titles = [2, 3, 1, 0.5, 0].flatMap((detail) =>
      results.map((result) => oneLine(`${name} ${result}${condition(detail)}`)),
    );
    titles.push(oneLine(`${name} ${results[0]}`), oneLine(`${name} ${results[1]}`));
    const base = titles.find((title) => title.length <= TITLE) ?? cut(titles.at(-1), TITLE);
    let title = titles.find((t) => t.length <= TITLE && !this.taken.has(t)) ?? base;
    for (let n = 2; this.taken.has(title); n++) title = `${base} (${n})`;
    this.taken.add(title);
    return title;
  }

  #subject(program) {
    let { observe } = program;
    if (observe.k === 'typeof') return { name: `typeof ${this.#flat(observe.of)}`, condition: () => '' };
    while (observe.k === 'spread' || isKeys(observe) || (observe.k === 'get' && observe.name === 'message'))
      observe = isKeys(observe) ? observe.args[0] : observe.of;
    if (observe.k === 'var') {
      const by = program.steps.findLast(({ expr }) =>
        [...walkProgram({ steps: [], observe: expr })].some((e) => e.k === 'var' && e.name === observe.name),
      );
      const made = by ?? program.steps.findLast((s) => s.bind === observe.name);
      if (made && (made.expr.k === 'call' || made.expr.k === 'new')) {
        const given = program.steps.findLast((s) => s.bind === observe.name).expr;
        const args = made.expr.args.map((e) => (e.k === 'var' && e.name === observe.name ? given : e));
        return this.#callSubject(
          { ...made.expr, args },
          { ...program, steps: program.steps.filter((s) => s !== made && s.bind !== observe.name) },
        );
      }
    }
    if (observe.k === 'call' || observe.k === 'new') return this.#callSubject(observe, program);
    if (observe.k === 'get') {
      const cls = this.variations.classOf(observe.of, program);
      const of = observe.of.k === 'call' ? this.#nameOf(observe.of, program) : (this.#className(cls) ?? 'result');
      const inner =
        observe.of.k === 'call'
          ? this.#callSubject(observe.of, program).condition
          : (detail) => this.#history(program, detail);
      return { name: `${of}.${observe.name}`, condition: inner };
    }
    return { name: observe.name ?? 'it', condition: () => '' };
  }

  #nameOf(expr, program) {
    if (expr.k === 'new') return `new ${this.#exportName(expr.cls)}`;
    const { fn } = expr;
    if (this.#isTakenApart(fn)) return fn.name;
    if (fn.k === 'get') {
      const cls = this.variations.classOf(fn.of, program);
      return `${this.#className(cls) ?? (fn.of.k === 'export' ? this.#exportName(fn.of) : (fn.of.name ?? 'result'))}.${fn.name}`;
    }
    const maker = fn.k === 'var' ? this.variations.makerOf(fn, program) : null;
    if (maker) return `${maker}()`;
    return fn.k === 'export' ? this.#exportName(fn) : (fn.name ?? 'it');
  }

  #className(cls) {
    return cls?.of ? this.#flat(cls.of) : cls?.name;
  }

  #exportName({ file, name }) {
    return this.#localName(file, name);
  }

  #callSubject(expr, program) {
    const params = this.variations.params(this.variations.calleeKey(expr, program));
    return {
      name: this.#nameOf(expr, program),
      condition: (detail) => this.#arguments(expr.args, params, detail) + this.#history(program, detail, chainOf(expr.fn?.of)),
    };
  }

  #arguments(args, params, detail) {
    if (!args.length) return params.some((p) => !p.optional) ? ' without arguments' : '';
    if (detail === 0) return '';
    const single = args.length === 1;
    const parts = args.flatMap((arg, i) => this.#argument(arg, params[i]?.name, single, detail) ?? []);
    return parts.length ? ` for ${join(parts)}` : '';
  }

  /** What is said of an argument, or the list of it; null for nothing. */
  #argument(expr, name, single, detail) {
    const text = this.#flat(expr);
    if (expr.k === 'lit' && expr.v === undefined && name && !single) return `no ${name}`;
    if (expr.k === 'lit') return single || !name ? shorten(text) : `${name} ${cut(text, detail < 1 ? SHORT / 2 : SHORT)}`;
    if (expr.k === 'list') {
      if (!expr.items.length) return name ? `no ${name}` : 'an empty list';
      if (text.length <= SHORT * detail) return name && !single ? `${name} ${text}` : text;
      const inner = expr.items.length === 1 ? this.#argument(expr.items[0], null, true, detail) : null;
      return inner ?? `${expr.items.length} ${name ?? 'items'}`;
    }
    if (expr.k === 'record') {
      if (!expr.entries.length) return name ? `empty ${name}` : 'an empty object';
      return expr.entries.slice(0, 1 + Math.ceil(detail)).map(([key, e]) => `${key} ${shorten(this.#flat(e))}`);
    }
    if (expr.k === 'code') return name ? `a given ${name}` : null;
    if (expr.k === 'new' || expr.k === 'call') return shorten(text);
    return null;
  }

  /** What was done before; chain: the calls that gave what the last one is called on. */
  #history(program, detail, chain = []) {
    const done = program.steps.flatMap(({ bind, expr }) => {
      const calls = chainOf(expr);
      return calls.length || bind || expr.k !== 'call' ? calls : [expr];
    });
    const acts = [...done, ...chain];
    if (!acts.length) return '';
    const told = acts.map((e) => {
      const name = e.fn.name ?? 'it';
      const text = `${name}(${e.args.map((a) => this.#flat(a)).join(', ')})`;
      return detail && text.length <= SHORT ? text : name;
    });
    const most = 1 + Math.ceil(detail);
    return ` after ${told.length <= most ? join(told) : `${told.length} calls, the last ${told.at(-1)}`}`;
  }

  #result({ observe }, outcome, inFull) {
    if (outcome.kind === 'throw')
      return `throws ${outcome.name}${inFull && outcome.message ? `: ${outcome.message}` : ''}`;
    const verb = observe.k === 'get' || observe.k === 'typeof' ? 'is' : observe.k === 'var' ? 'leaves' : 'returns';
    const expr = isWithMore(outcome.expr) ? outcome.expr.args[0] : outcome.expr;
    if (isKeys(observe)) return `has ${expr.items.length === 1 ? 'the key' : 'the keys'} ${join(expr.items.map((e) => this.#flat(e)))}`;
    const text = this.#flat(expr);
    if (text.length <= SHORT * 1.5 && (inFull || expr.k !== 'list' || text.length <= SHORT))
      return `${verb} ${expr.k === 'list' && !expr.items.length ? 'an empty list' : text}`;
    if (expr.k === 'list') return `${verb} ${expr.items.length} item${expr.items.length === 1 ? '' : 's'}`;
    if (expr.k === 'record')
      return `${verb} ${join(
        expr.entries
          .filter(([, e]) => isData(e))
          .slice(0, 2)
          .map(([key, e]) => `${key} ${shorten(this.#flat(e))}`),
      )}`;
    return `${verb} ${shorten(text)}`;
  }

  #flat(expr) {
    return print(expr, { column: -Infinity, mark: this.style.mark, names: (e) => this.#exportName(e) });
  }
}

/** The calls that were made on what is there or on what a call before gave, the first first: not the one that makes it. */
function chainOf(expr) {
  if (expr?.k !== 'call' || expr.fn.k !== 'get' || !/^(call|new|var)$/.test(expr.fn.of.k)) return [];
  return [...chainOf(expr.fn.of), expr];
}

/** Is an expr `Object.assign([...], { ... })`, for a list that has properties too? */
const isWithMore = ({ k, fn, args }) => k === 'call' && fn.name === 'assign' && args[0].k === 'list';

/** Is an expr `Object.keys(of)`? */
const isKeys = ({ k, fn }) => k === 'call' && fn.k === 'get' && fn.name === 'keys' && fn.of.k === 'global';

const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const shorten = (text) => cut(text, SHORT);
const oneLine = (text) => text.replace(/\s+/g, ' ');
const join = (parts) => (parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`);

/** The same program with its own names other than the imported ones. */
function withoutClashes(program, taken) {
  const clashing = new Map(
    program.steps
      .filter((s) => taken.has(s.bind))
      .map((s) => [s.bind, `the${s.bind[0].toUpperCase()}${s.bind.slice(1)}`]),
  );
  if (!clashing.size) return program;
  const rename = (expr) => renamed(expr, clashing);
  const steps = program.steps.map((s) => ({ ...s, bind: clashing.get(s.bind) ?? s.bind, expr: rename(s.expr) }));
  return { ...program, steps, observe: rename(program.observe) };
}
