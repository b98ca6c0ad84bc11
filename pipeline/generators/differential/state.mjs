/** Does a module keep something between two calls? In doubt, yes: each run then gets modules of its own. */

import { isFunction, nodes, propertyName } from './source.mjs';

const CHANGES = /^(set|add|delete|clear|push|pop|shift|unshift|splice|sort|reverse|fill|next)$/;

export function keepsState(program) {
  const kept = new Map(); // name of a variable of the module → what it is made of
  for (const statement of moduleBody(program)) {
    const declaration = statement.declaration ?? statement;
    const { body } = declaration;
    if (declaration.type === 'ClassDeclaration' && body.body.some((m) => m.static && /Property$/.test(m.type))) return true;
    for (const { id, init } of declaration.type === 'VariableDeclaration' ? declaration.declarations : []) {
      if (id.type === 'Identifier') kept.set(id.name, init);
      // A pattern with these flags remembers where it stopped, where `test` or `exec` asks it.
      if (init?.type === 'RegExpLiteral' && /[gy]/.test(init.flags) && isAsked(program, id.name)) return true;
    }
  }
  const isMade = (name) => /^(ArrayExpression|ObjectExpression|NewExpression|CallExpression)$/.test(kept.get(name)?.type);
  for (const [node, ancestors] of nodes(program)) {
    if (ancestors.filter(isFunction).length < (program.body === moduleBody(program) ? 1 : 2)) continue;
    const isFactory = node.type === 'CallExpression' && node.callee.type === 'Identifier' && isMade(node.callee.name);
    if (isFactory && kept.get(node.callee.name).callee?.name !== 'require') return true; // a counter made by a factory
    const target = written(node);
    let root = target;
    while (/MemberExpression$/.test(root?.type)) root = root.object;
    if (root?.type === 'ThisExpression' && isOfObject(ancestors, moduleBody(program))) return true;
    if (!kept.has(root?.name) || isShadowed(root.name, ancestors)) continue;
    if (root === target || isMade(root.name)) return true;
  }
  return false;
}

/** The statements of a module, or those in the one function that a module is wrapped in. */
function moduleBody(program) {
  const [only, ...rest] = program.body.filter((n) => n.type !== 'EmptyStatement');
  const called = only?.expression?.type === 'UnaryExpression' ? only.expression.argument : only?.expression;
  if (rest.length || called?.type !== 'CallExpression') return program.body;
  const wrapped = [called.callee, ...called.arguments].filter(isFunction).at(-1);
  return wrapped?.body.type === 'BlockStatement' ? wrapped.body.body : program.body;
}

function isAsked(program, name) {
  return [...nodes(program)].some(
    ([n]) =>
      n.type === 'CallExpression' &&
      n.callee.object?.name === name &&
      /^(test|exec)$/.test(propertyName(n.callee) ?? ''),
  );
}

function isShadowed(name, ancestors) {
  return ancestors.some(
    (a) =>
      isFunction(a) &&
      (a.params.some((p) => (p.left ?? p).name === name) ||
        [...nodes(a.body)].some(([n]) => n.type === 'VariableDeclarator' && n.id.name === name)),
  );
}

/** Is `this`, where these are around it, an object of the module, and none that is made later on? */
function isOfObject(ancestors, body) {
  const at = ancestors.findLastIndex((a) => isFunction(a) && a.type !== 'ArrowFunctionExpression');
  if (at < 0 || ancestors.slice(0, at).some((a) => isFunction(a) && a.body.body !== body)) return false;
  const [method, parent] = [ancestors[at], ancestors[at - 1]];
  if (method.type === 'ObjectMethod' || parent.type === 'ObjectProperty') {
    const literal = ancestors.findLastIndex((a, i) => i < at && a.type === 'ObjectExpression');
    return propertyName(ancestors[literal - 1]?.left ?? {}) !== 'prototype';
  }
  const [name, of] = parent.type === 'AssignmentExpression' && parent.left.object ? [propertyName(parent.left), parent.left.object] : [];
  return Boolean(name) && !/^[A-Z]/.test(name) && propertyName(of) !== 'prototype' && name !== 'exports';
}

/** What a node writes to, where it writes. */
function written(node) {
  if (node.type === 'AssignmentExpression') return node.left;
  if (node.type === 'UpdateExpression') return node.argument;
  if (node.type === 'UnaryExpression' && node.operator === 'delete') return node.argument;
  const isChange = node.type === 'CallExpression' && CHANGES.test(propertyName(node.callee) ?? '');
  return isChange && node.callee.object ? node.callee : null;
}
