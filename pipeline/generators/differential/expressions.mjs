/** Reads the expressions of a test as exprs: literals, constants, helper factories; refuses what it cannot read. */

import { call, children, code, create, exported, get, global, isData, list, lit, local, record } from './program.mjs';
import { isFunction, nodes } from './source.mjs';

const GLOBALS = new Set([
  'Date',
  'Map',
  'Set',
  'Array',
  'Object',
  'Number',
  'String',
  'Math',
  'JSON',
  'Symbol',
  'BigInt',
  'URL',
  'RegExp',
  'Error',
  'Promise',
]);
const MOST_STEPS = 12;

export class Unreadable extends Error {}

/** What an identifier stands for as one test is read: an expr, or a helper function to be read in place of its call. */
export class Names {
  constructor(outer = null) {
    this.outer = outer;
    this.own = new Map();
  }

  find(name) {
    return this.own.get(name) ?? this.outer?.find(name);
  }
}

/** `statement(node)`, which adds to `steps`, is its subclass's. */
export class Expressions {
  steps = [];
  observed = [];

  constructor(names, source, { constantsOnly = false, depth = 0 }) {
    this.names = names;
    this.source = source;
    this.constantsOnly = constantsOnly;
    this.depth = depth;
  }

  push(step) {
    if (this.constantsOnly || this.steps.length >= MOST_STEPS) throw new Unreadable();
    this.steps.push(step);
  }

  /** Gives a pattern's names their values. A value that is made by calls becomes a step, so that it is made once. */
  bind(pattern, expr, asStep = false) {
    switch (pattern?.type) {
      case 'Identifier':
        if (asStep && !isData(expr) && expr.k !== 'var' && !this.constantsOnly) {
          this.push({ bind: pattern.name, expr, wait: false });
          this.names.own.set(pattern.name, local(pattern.name));
        } else this.names.own.set(pattern.name, expr);
        return;
      case 'AssignmentPattern':
        this.bind(pattern.left, expr.k === 'lit' && expr.v === undefined ? this.expr(pattern.right) : expr, asStep);
        return;
      case 'ArrayPattern':
        pattern.elements.forEach((p, i) => p && this.bind(p, this.item(expr, i), asStep));
        return;
      case 'ObjectPattern':
        for (const p of pattern.properties) {
          if (p.type !== 'ObjectProperty' || p.computed) throw new Unreadable();
          this.bind(p.value, this.member(expr, p.key.name ?? p.key.value), asStep);
        }
        return;
      default:
        throw new Unreadable();
    }
  }

  item(expr, i) {
    if (expr.k === 'list') return expr.items[i] ?? lit(undefined);
    throw new Unreadable();
  }

  member(expr, name) {
    if (expr.k === 'record') return expr.entries.findLast(([key]) => key === name)?.[1] ?? lit(undefined);
    if (expr.k === 'list' && typeof name === 'number') return this.item(expr, name);
    if (expr.k === 'export' && expr.name === '*') return exported(expr.file, name);
    return get(expr, name);
  }

  expr(node) {
    switch (node.type) {
      case 'NumericLiteral':
      case 'StringLiteral':
      case 'BooleanLiteral':
        return lit(node.value);
      case 'NullLiteral':
        return lit(null);
      case 'BigIntLiteral':
        return lit(BigInt(node.value));
      case 'RegExpLiteral':
        return code(this.source.slice(node.start, node.end));
      case 'TemplateLiteral':
        return lit(
          node.quasis
            .map((q, i) => q.value.cooked + (i < node.expressions.length ? this.value(node.expressions[i]) : ''))
            .join(''),
        );
      case 'UnaryExpression': {
        const v = this.value(node.argument);
        if (node.operator === '-') return lit(-v);
        if (node.operator === '!') return lit(!v);
        throw new Unreadable();
      }
      case 'BinaryExpression':
        return lit(arithmetic(node.operator, this.value(node.left), this.value(node.right)));
      case 'Identifier':
        return this.identifier(node.name);
      case 'ArrayExpression':
        return list(
          node.elements.flatMap((e) =>
            e?.type === 'SpreadElement'
              ? this.spreadItems(e.argument)
              : [this.expr(e ?? { type: 'Identifier', name: 'undefined' })],
          ),
        );
      case 'ObjectExpression':
        return this.object(node);
      case 'MemberExpression':
      case 'OptionalMemberExpression':
        return this.member(this.expr(node.object), node.computed ? this.value(node.property) : node.property.name);
      case 'NewExpression':
        return create(
          this.expr(node.callee),
          node.arguments.map((a) => this.expr(a)),
        );
      case 'CallExpression':
        return this.callExpression(node);
      case 'AwaitExpression': {
        const expr = this.expr(node.argument);
        if (this.constantsOnly || isData(expr)) throw new Unreadable();
        this.observed.push({ steps: [...this.steps], observe: expr, wait: true });
        const name = `result${this.steps.length || ''}`;
        this.push({ bind: name, expr, wait: true });
        return local(name);
      }
      case 'ArrowFunctionExpression':
      case 'FunctionExpression':
        return this.closure(node);
      case 'TSAsExpression':
      case 'TSNonNullExpression':
        return this.expr(node.expression);
      default:
        throw new Unreadable();
    }
  }

  value(node) {
    const expr = this.expr(node);
    if (expr.k !== 'lit') throw new Unreadable();
    return expr.v;
  }

  identifier(name) {
    const known = this.names.find(name);
    if (known?.helper)
      return new this.constructor(known.names, this.source, { constantsOnly: true }).closure(known.helper);
    if (known) return known;
    if (name === 'undefined') return lit(undefined);
    if (name === 'NaN') return lit(NaN);
    if (name === 'Infinity') return lit(Infinity);
    if (GLOBALS.has(name)) return global(name);
    throw new Unreadable();
  }

  spreadItems(node) {
    const expr = this.expr(node);
    if (expr.k !== 'list') throw new Unreadable();
    return expr.items;
  }

  object(node) {
    const entries = new Map();
    for (const p of node.properties) {
      if (p.type === 'SpreadElement') {
        const expr = this.expr(p.argument);
        if (expr.k === 'lit' && expr.v === undefined) continue;
        if (expr.k !== 'record') throw new Unreadable();
        for (const [key, e] of expr.entries) entries.set(key, e);
      } else if (p.type === 'ObjectProperty') {
        const key = p.computed ? this.value(p.key) : (p.key.name ?? p.key.value);
        entries.set(String(key), this.expr(p.value));
      } else throw new Unreadable();
    }
    return record([...entries]);
  }

  callExpression(node) {
    if (node.callee.type === 'Identifier') {
      const known = this.names.find(node.callee.name);
      if (known?.helper)
        return this.inline(
          known,
          node.arguments.map((a) => this.expr(a)),
        );
    }
    const args = node.arguments.flatMap((a) =>
      a.type === 'SpreadElement' ? this.spreadItems(a.argument) : [this.expr(a)],
    );
    const fn = this.expr(node.callee);
    // A function bound for `throws`, or called with another `this`, is what a test calls.
    const isBound = fn.k === 'get' && /^(bind|call)$/.test(fn.name) && (fn.of.k === 'export' || fn.of.k === 'get');
    return isBound ? call(fn.of, args.slice(1)) : (wholeList(node, fn) ?? call(fn, args));
  }

  /** A helper's call, read as its body with the arguments in place. */
  inline({ helper, names }, args) {
    if (this.depth > 4 || helper.async || helper.generator) throw new Unreadable();
    const inside = new this.constructor(new Names(names), this.source, {
      depth: this.depth + 1,
      constantsOnly: this.constantsOnly,
    });
    inside.steps = this.steps;
    inside.observed = this.observed;
    helper.params.forEach((p, i) => {
      if (p.type === 'RestElement') inside.bind(p.argument, list(args.slice(i)));
      else inside.bind(p, args[i] ?? lit(undefined));
    });
    if (helper.body.type !== 'BlockStatement') return inside.expr(helper.body);
    for (const statement of helper.body.body) {
      if (statement.type === 'ReturnStatement')
        return statement.argument ? inside.expr(statement.argument) : lit(undefined);
      inside.statement(statement);
    }
    return lit(undefined);
  }

  /** A function as its own text, where it needs nothing from around it. */
  closure(node) {
    const bound = new Set();
    for (const [inner, ancestors] of nodes(node)) {
      const parent = ancestors.at(-1);
      if (
        inner.type === 'Identifier' &&
        (parent?.params?.includes(inner) ||
          parent?.type === 'VariableDeclarator' ||
          ancestors.some((a) => /Pattern$/.test(a.type)))
      )
        bound.add(inner.name);
    }
    for (const [inner, ancestors] of nodes(node)) {
      const parent = ancestors.at(-1);
      if (inner.type !== 'Identifier' || bound.has(inner.name) || GLOBALS.has(inner.name) || inner.name === 'undefined')
        continue;
      const isName =
        (/MemberExpression$/.test(parent.type) && parent.property === inner && !parent.computed) ||
        (/^Object(Property|Method)$/.test(parent.type) && parent.key === inner && !parent.computed);
      if (!isName) throw new Unreadable();
    }
    const text = this.source.slice(node.start, node.end);
    if (/^(async )?function\s+\w/.test(text)) throw new Unreadable();
    return code(text);
  }
}

/** The program with every callback in it fit to stand alone: one that needs what is around it gives back what it gets. */
export function closedOnly(project, program) {
  const closed = (expr) => {
    if (expr.k === 'code') return isClosed(project, expr.text) ? expr : code('(x) => x');
    return children(expr).reduce((whole, [child], i) => {
      const to = closed(child);
      return to === child ? whole : children(whole)[i][1](to);
    }, expr);
  };
  const steps = program.steps.map((s) => ({ ...s, expr: closed(s.expr) }));
  return { ...program, steps, observe: closed(program.observe) };
}

function isClosed(project, text) {
  if (/^\/./.test(text)) return true; // a pattern
  try {
    const source = `(${text})`;
    const { expression } = project.parse(source).program.body[0];
    new Expressions(new Names(), source, {}).closure(expression);
    return true;
  } catch {
    return false;
  }
}

/** `f(x).map(...)`: what is worth looking at is the whole of f(x). */
function wholeList(node, fn) {
  if (fn.k !== 'get' || !/^(map|filter|join|sort)$/.test(fn.name) || !isFunction(node.arguments[0]) || isData(fn.of))
    return null;
  return fn.of.k === 'spread' ? fn.of.of : fn.of;
}

function arithmetic(operator, a, b) {
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '**':
      return a ** b;
    default:
      throw new Unreadable();
  }
}
