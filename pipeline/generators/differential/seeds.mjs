/**
 * The calls in the existing tests as programs: what a test does up to each thing it looks at. Only what can be read
 * is taken (literals, constants, helper factories, hooks, table loops); the rest of a test is passed over.
 */

import path from 'node:path';

import { Names } from './expressions.mjs';
import { exported, get } from './program.mjs';
import { Reader, unroll } from './reader.mjs';
import { isFunction } from './source.mjs';
import { styleOf } from './style.mjs';

const HOOKS = /^(before|beforeEach|beforeAll|setup|suiteSetup)$/;
const BLOCKS = /^(describe|context|suite)$/;
const CASES = /^(it|test|specify)$/;

/**
 * { programs, style } of the test files. tests: [{ file, source }]; modules: the project's files that may be named.
 */
export function readTests(project, tests, modules, write) {
  const programs = [];
  const naming = new Map(); // file → how the tests name it: { specifier, folder, local: name of the export → theirs }
  let style = null;
  for (const { file, source } of tests) {
    let tree;
    try {
      tree = project.parse(source);
    } catch {
      continue;
    }
    const names = new Names();
    const noteName = (of, specifier, name, local) => {
      const known = naming.get(of) ?? { specifier, folder: path.posix.dirname(file), local: new Map() };
      naming.set(of, known);
      if (!known.local.has(name)) known.local.set(name, local);
    };
    imports(tree.program, (specifier) => project.resolve(specifier, file), new Set(modules), names, project, noteName);
    style ??= styleOf(tree.program, source, project.format(file, source));
    suite(tree.program.body, names, [], source, programs);
  }
  style ??= styleOf({ body: [] }, '', project.format(write, ''));
  return { programs, style: { ...style, naming } };
}

function imports(program, resolve, modules, names, project, noteName) {
  const target = (specifier) => {
    const file = resolve(specifier);
    return file && modules.has(file) ? file : null;
  };
  for (const node of program.body) {
    if (node.type === 'ImportDeclaration') {
      const from = target(node.source.value);
      if (!from) continue;
      for (const s of node.specifiers) {
        const name =
          s.type === 'ImportSpecifier'
            ? (s.imported.name ?? s.imported.value)
            : s.type === 'ImportDefaultSpecifier'
              ? 'default'
              : '*';
        names.own.set(s.local.name, imported(from, name, project));
        noteName(from, node.source.value, name === '*' ? 'default' : name, s.local.name);
      }
    }
    for (const { id, init } of node.type === 'VariableDeclaration' ? node.declarations : []) {
      const member = init?.type === 'MemberExpression' && !init.computed ? init.property.name : null;
      const required = member ? init.object : init;
      const from = required?.callee?.name === 'require' ? target(required.arguments[0]?.value) : null;
      if (!from) continue;
      const whole = imported(from, 'require', project);
      const of = member ? memberOf(whole, member) : whole;
      const [specifier] = required.arguments;
      if (id.type === 'Identifier') noteName(from, specifier.value, member ?? 'default', id.name);
      for (const p of id.properties ?? [])
        if (p.value?.name && !member) noteName(from, specifier.value, p.key.name, p.value.name);
      if (id.type === 'Identifier') names.own.set(id.name, of);
      else
        for (const p of id.properties ?? []) if (p.value?.name) names.own.set(p.value.name, memberOf(of, p.key.name));
    }
  }
}

/** What a name that a test imports stands for. A CommonJS module is one value, whose members are looked up. */
function imported(file, name, project) {
  if (project.format(file) === 'commonjs') {
    const whole = exported(file, 'default');
    return ['default', 'require', '*'].includes(name) ? whole : get(whole, name);
  }
  return exported(file, name === 'require' ? '*' : name);
}

const memberOf = (expr, name) =>
  expr.k === 'export' && expr.name === '*' ? exported(expr.file, name) : get(expr, name);

/** Reads the statements of a file or a describe block. hooks: bodies that run before each test. */
function suite(statements, names, hooks, source, programs) {
  const inner = [...hooks];
  const blocks = [];
  for (const statement of statements) {
    if (statement.type === 'VariableDeclaration' || statement.type === 'FunctionDeclaration') {
      new Reader(names, source, { constantsOnly: true }).tolerate(statement);
      continue;
    }
    const expression = statement.expression ?? statement;
    if (/^ForOf/.test(statement.type)) {
      unroll(statement, names, source, (body, row) => suite(body, row, inner, source, programs));
      continue;
    }
    if (expression.type !== 'CallExpression') continue;
    const callee = expression.callee.name ?? expression.callee.object?.name ?? '';
    const body = expression.arguments.find(isFunction)?.body;
    if (!body) continue;
    if (HOOKS.test(callee)) inner.push(body);
    else if (BLOCKS.test(callee)) blocks.push(body);
    else if (CASES.test(callee)) testCase(body, names, inner, source, programs);
    else if (expression.callee.property?.name === 'forEach') {
      unroll(
        { right: expression.callee.object, left: expression.arguments[0].params[0], body },
        names,
        source,
        (b, row) => suite(b, row, inner, source, programs),
      );
    }
  }
  for (const body of blocks)
    if (body.type === 'BlockStatement') suite(body.body, new Names(names), inner, source, programs);
}

function testCase(body, names, hooks, source, programs) {
  const reader = new Reader(new Names(names), source, {});
  for (const hook of hooks) reader.block(hook);
  reader.block(body);
  programs.push(...reader.observed);
}
