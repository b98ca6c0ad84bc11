/** Reads the statements of a test as steps and as what it looks at; what it cannot read it passes over. */

import { Expressions, Names, Unreadable } from './expressions.mjs';
import { isData } from './program.mjs';
import { isFunction, nodes } from './source.mjs';

/** Visits the body of a loop once for each row of a table that can be read. */
export function unroll({ left, right, body }, names, source, visit) {
  const reader = new Reader(names, source, { constantsOnly: true });
  let rows;
  try {
    rows = reader.expr(right);
  } catch {
    return;
  }
  if (rows.k !== 'list') return;
  for (const row of rows.items.slice(0, 20)) {
    const inner = new Reader(new Names(names), source, { constantsOnly: true });
    try {
      inner.bind(left.type === 'VariableDeclaration' ? left.declarations[0].id : left, row);
    } catch {
      continue;
    }
    visit(
      body.type === 'BlockStatement' ? body.body : [{ type: 'ExpressionStatement', expression: body }],
      inner.names,
    );
  }
}

export class Reader extends Expressions {
  tolerate(statement) {
    try {
      this.statement(statement);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
    }
  }

  block(body) {
    if (body.type === 'BlockStatement') for (const statement of body.body) this.tolerate(statement);
    else this.tolerate({ type: 'ExpressionStatement', expression: body });
  }

  statement(node) {
    switch (node.type) {
      case 'FunctionDeclaration':
        this.names.own.set(node.id.name, { helper: node, names: this.names });
        return;
      case 'VariableDeclaration':
        for (const { id, init } of node.declarations) {
          if (!init) continue;
          if (isFunction(init) && id.type === 'Identifier')
            this.names.own.set(id.name, { helper: init, names: this.names });
          else if (!(init.type === 'CallExpression' && init.callee.name === 'require'))
            this.bind(id, this.expr(init), true);
        }
        return;
      case 'ForOfStatement':
        unroll(node, this.names, this.source, (body, row) => {
          const outer = this.names;
          this.names = row;
          for (const statement of body) this.tolerate(statement);
          this.names = outer;
        });
        return;
      case 'BlockStatement':
        this.block(node);
        return;
      case 'ExpressionStatement':
        this.expressionStatement(node.expression);
        return;
      default:
    }
  }

  expressionStatement(node) {
    if (node.type === 'AwaitExpression') return this.expressionStatement(node.argument);
    if (node.type === 'AssignmentExpression') {
      if (node.left.type === 'Identifier' && node.operator === '=') this.bind(node.left, this.expr(node.right), true);
      return undefined;
    }
    if (node.type !== 'CallExpression') return undefined;
    if (this.isAssertion(node)) return this.assertion(node);
    if (node.callee.property?.name === 'forEach' && isFunction(node.arguments[0])) {
      return this.statement({
        type: 'ForOfStatement',
        right: node.callee.object,
        left: node.arguments[0].params[0],
        body: node.arguments[0].body,
      });
    }
    const expr = this.expr(node);
    if (!this.look(expr)) this.push({ bind: null, expr, wait: false });
    return undefined;
  }

  isAssertion({ callee }) {
    let root = callee;
    while (root.type === 'MemberExpression' || root.type === 'CallExpression') root = root.object ?? root.callee;
    return (
      /^(assert|expect|should|t|strictEqual|deepEqual|deepStrictEqual|equal|throws|rejects|ok)$/.test(root.name ?? '') &&
      !this.names.find(root.name)
    );
  }

  /** Every call in an assertion's arguments is something that a test looks at. */
  assertion(node) {
    const roots = [];
    for (let at = node; at; at = at.callee?.object ?? at.callee)
      if (at.type === 'CallExpression') roots.push(...at.arguments);
    for (const argument of roots) {
      const body = isFunction(argument) ? argument.body : argument;
      if (body.type === 'BlockStatement') {
        for (const statement of body.body) this.tolerate(statement);
        continue;
      }
      for (const part of [body, ...inner(body)]) {
        try {
          this.look(this.expr(part));
          break;
        } catch (error) {
          if (!(error instanceof Unreadable)) throw error;
        }
      }
    }
    return undefined;
  }

  /** Notes that a test looks at `expr`. True where that is a step of the test too. */
  look(expr) {
    if (isData(expr) || this.constantsOnly) return false;
    if (expr.k === 'var') {
      const at = this.steps.findLastIndex((s) => s.bind === expr.name);
      if (at >= 0)
        this.observed.push({ steps: this.steps.slice(0, at), observe: this.steps[at].expr, wait: this.steps[at].wait });
    }
    this.observed.push({ steps: [...this.steps], observe: expr, wait: false });
    // A call that a test asserts on may also change what later calls see.
    const acts = expr.k === 'call' && expr.fn.k === 'get' && expr.fn.of.k === 'var';
    if (acts) this.push({ bind: null, expr, wait: false });
    return acts;
  }
}

function* inner(node) {
  for (const [child, ancestors] of nodes(node)) {
    if (child !== node && /^(Call|New|Member|Await)Expression$/.test(child.type) && !ancestors.some(isFunction))
      yield child;
  }
}
