/**
 * The calls in the existing tests as programs: what a test does up to each thing it looks at. Only what can be read
 * is taken (literals, constants, helper factories, hooks, table loops); the rest of a test is passed over.
 */

import path from 'node:path';

import { Names } from './expressions.mjs';
import { exported } from './program.mjs';
import { Reader, unroll } from './reader.mjs';
import { isFunction, nodes, parseSource } from './source.mjs';

const HOOKS = /^(before|beforeEach|beforeAll|setup|suiteSetup)$/;
const BLOCKS = /^(describe|context|suite)$/;
const CASES = /^(it|test|specify)$/;

/**
 * { programs, style } of the test files. tests: [{ file, source }]; modules: the project's files that may be named.
 */
export function readTests(parser, tests, modules) {
  const programs = [];
  let style = null;
  for (const { file, source } of tests) {
    let tree;
    try {
      tree = parseSource(parser, source);
    } catch {
      continue;
    }
    const names = new Names();
    imports(tree.program, file, new Set(modules), names);
    style ??= styleOf(tree.program, source);
    suite(tree.program.body, names, [], source, programs);
  }
  return { programs, style: style ?? { mark: "'", assert: "import assert from 'node:assert/strict';", strict: true } };
}

/** Relative imports of a file, as paths in the project. */
export function importedFiles(parser, file, source) {
  const found = [];
  for (const [node] of nodes(parseSource(parser, source).program)) {
    const specifier = /^(Import|Export\w+)Declaration$/.test(node.type)
      ? node.source?.value
      : node.callee?.name === 'require'
        ? node.arguments[0]?.value
        : null;
    if (/^\.\.?\//.test(specifier ?? '')) found.push(path.posix.join(path.posix.dirname(file), specifier));
  }
  return found;
}

function styleOf(program, source) {
  const strings = source.match(/'[^'\n]*'|"[^"\n]*"/g) ?? [];
  const mark = strings.filter((s) => s[0] === '"').length > strings.length / 2 ? '"' : "'";
  const found = program.body.find(
    (n) => n.type === 'ImportDeclaration' && /^(node:)?assert(\/strict)?$/.test(n.source.value),
  );
  const assert = found?.specifiers.some((s) => s.local.name === 'assert') ? source.slice(found.start, found.end) : null;
  const strict = assert === null || /assert\/strict|\bstrict\b/.test(assert);
  return { mark, assert: assert ?? `import assert from ${mark}node:assert/strict${mark};`, strict };
}

function imports(program, file, modules, names) {
  const target = (specifier) => {
    if (!/^\.\.?\//.test(specifier ?? '')) return null;
    const found = path.posix.join(path.posix.dirname(file), specifier);
    return [found, `${found}.js`, `${found}/index.js`].find((f) => modules.has(f)) ?? null;
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
        names.own.set(s.local.name, exported(from, name));
      }
    }
    for (const { id, init } of node.type === 'VariableDeclaration' ? node.declarations : []) {
      const from = init?.callee?.name === 'require' ? target(init.arguments[0]?.value) : null;
      if (!from) continue;
      if (id.type === 'Identifier') names.own.set(id.name, exported(from, 'default'));
      else
        for (const p of id.properties ?? []) if (p.value?.name) names.own.set(p.value.name, exported(from, p.key.name));
    }
  }
}

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
