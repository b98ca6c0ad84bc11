/** How the tests beside the new ones are written, read from one of their files: runner, assertions, layout. */

import { nodes, isFunction } from './source.mjs';

const CALLS = /^(it|test|specify)$/;
const ASSERT = /^(node:)?assert(\/strict)?$/;
/** What a test is given to assert with, where its runner does so. */
const GIVEN = { tape: 'tape' };

/**
 * program: a test file's syntax tree, with its source; format: 'module' or 'commonjs'.
 *
 *   mark, semi, indent            quotes (' or "), whether statements end in a semicolon, one step of indentation
 *   dangle, dangleCalls           whether lists, and calls, of several lines end in a comma
 *   declare                       'const', or 'var' where the file has nothing else: a linter may know of no other
 *   syntax                        'import' or 'require'
 *   call, isArrow, param          the name of the function that makes a test, how its function is written, its parameter
 *   library                       'assert' | 'expect' | 'chai' | 'chai-assert' | 'tape'
 *   name, strict                  what that is called in a test; whether assert's plain names are the strict ones
 *   imports                       the statements that a file of its own needs for all of that, and 'use strict' if the tests have it
 *   names                         what these bring in
 */
export function styleOf(program, source, format) {
  const layout = layoutOf(program, source);
  const syntax = format === 'commonjs' ? 'require' : 'import';
  const bound = bindings(program);
  const tests = testsIn(program, bound);
  const made = mostly(tests.map(({ name }) => name)) ?? 'it';
  const maker = bound.get(made);
  const runner = maker?.module ?? null;
  const call = CALLS.test(made) && made !== 'specify' ? made : 'test';
  const fns = tests.map(({ fn }) => fn);
  const isArrow = fns.filter((fn) => fn.type === 'ArrowFunctionExpression').length >= fns.length / 2;
  const param = GIVEN[runner] ? (mostly(fns.map((fn) => fn.params[0]?.name).filter(Boolean)) ?? 't') : null;
  const asserted = libraryOf(fns, bound, runner, param);
  const write = (local, { module, name }) => statement({ ...layout, syntax }, local, module, name);
  const directive = program.directives?.find(({ value }) => value.value === 'use strict');
  const imports = [
    ...(syntax === 'require' && directive ? [source.slice(directive.start, directive.end)] : []),
    ...(maker ? [write(call, maker)] : []),
    ...(asserted.from ? [own(program, source, asserted.name) ?? write(asserted.name, asserted.from)] : []),
  ];
  const { library, name, strict } = asserted;
  return {
    ...layout,
    syntax,
    call,
    isArrow,
    param,
    library,
    name,
    strict,
    imports,
    names: [call, name, param ?? call],
  };
}

/** Do lists and objects (or calls) of several lines end in a comma, here? usual: where there are none. */
function dangles(program, source, types, usual) {
  const ends = [...nodes(program)]
    .map(([node]) => ({ ...node, last: (node.properties ?? node.elements ?? node.arguments)?.at(-1) }))
    .filter(({ type, last, loc }) => types.test(type) && last && last.loc.end.line < loc.end.line)
    .map(({ last, end }) => source.slice(last.end, end).includes(','));
  return ends.length === 0 ? usual : ends.filter(Boolean).length >= ends.length / 2;
}

function layoutOf(program, source) {
  const strings = source.match(/'[^'\n]*'|"[^"\n]*"/g) ?? [];
  const mark = strings.filter((s) => s[0] === '"').length > strings.length / 2 ? '"' : "'";
  const ended = program.body
    .filter((n) => /^(Expression|Import|Variable)/.test(n.type))
    .map((n) => source[n.end - 1] === ';');
  const semi = ended.filter(Boolean).length >= ended.length / 2;
  const steps = (source.match(/^(\t|  +)(?=[^\s*])/gm) ?? []).map((s) => (s[0] === '\t' ? 0 : s.length));
  const step = steps.includes(0) ? 0 : Math.min(4, ...steps.filter((n) => n % 2 === 0), 8);
  const kinds = [...nodes(program)].map(([n]) => n).filter((n) => n.type === 'VariableDeclaration').map((n) => n.kind);
  const declare = kinds.length && kinds.every((kind) => kind === 'var') ? 'var' : 'const';
  const dangle = dangles(program, source, /^(Object|Array)Expression$/, true);
  const dangleCalls = dangles(program, source, /^(Call|New)Expression$/, dangle && declare !== 'var');
  return { mark, semi, declare, dangle, dangleCalls, indent: step === 0 ? '\t' : ' '.repeat(steps.length ? step : 2) };
}

/** Map of names to { module, name }: what a file imports or requires; name is 'default' for the whole. */
function bindings(program) {
  const bound = new Map();
  for (const node of program.body) {
    if (node.type === 'ImportDeclaration') {
      for (const s of node.specifiers) {
        const name = s.type === 'ImportSpecifier' ? (s.imported.name ?? s.imported.value) : 'default';
        bound.set(s.local.name, { module: node.source.value, name });
      }
    }
    for (const { id, init } of node.type === 'VariableDeclaration' ? node.declarations : []) {
      const { module, member } = required(init);
      if (!module) continue;
      if (id.type === 'Identifier') bound.set(id.name, { module, name: member ?? 'default' });
      else
        for (const p of id.properties ?? []) if (p.value?.name) bound.set(p.value.name, { module, name: p.key.name });
    }
  }
  return bound;
}

/** { module, member } of `require(module)` and `require(module).member`. */
export function required(init) {
  const member = init?.type === 'MemberExpression' && !init.computed ? init.property.name : null;
  const call = member ? init.object : init;
  const [argument] = call?.callee?.name === 'require' ? call.arguments : [];
  return { module: argument?.value ?? null, member };
}

function testsIn(program, bound) {
  const found = [];
  for (const [node] of nodes(program)) {
    const name = node.type === 'CallExpression' ? makerOf(node.callee) : null;
    if (!name || !(CALLS.test(name) || GIVEN[bound.get(name)?.module])) continue;
    const fn = node.arguments.find(isFunction);
    if (fn) found.push({ name, fn });
  }
  return found;
}

/** The name at the root of what is called: of `test`, `test.only` and `test.each(rows)` it is `test`. */
function makerOf(callee) {
  if (callee.type === 'MemberExpression')
    return /^(describe|suite|before|after)/.test(callee.property.name) ? null : makerOf(callee.object);
  if (callee.type === 'CallExpression') return makerOf(callee.callee);
  if (callee.type === 'TaggedTemplateExpression') return makerOf(callee.tag);
  return callee.name ?? null;
}

/** What the tests assert with: whichever they call most. */
function libraryOf(fns, bound, runner, param) {
  const seen = [];
  for (const fn of fns) {
    for (const [node] of nodes(fn.body)) {
      if (node.type !== 'CallExpression') continue;
      let root = node.callee;
      while (root.type === 'MemberExpression') root = root.object;
      const known = root.name && libraryNamed(root.name, bound, runner, param);
      if (known) seen.push(JSON.stringify({ ...known, name: root.name }));
    }
  }
  const most = mostly(seen);
  if (most) return JSON.parse(most);
  if (param) return { library: GIVEN[runner], name: param };
  if (runner === 'vitest' || runner === '@jest/globals')
    return { library: 'expect', name: 'expect', from: { module: runner, name: 'expect' } };
  return { library: 'assert', name: 'assert', strict: true, from: { module: 'node:assert/strict', name: 'default' } };
}

function libraryNamed(name, bound, runner, param) {
  if (param && name === param) return { library: GIVEN[runner] };
  const from = bound.get(name);
  if (!from) return name === 'expect' ? { library: 'expect' } : null;
  const { module } = from;
  if (ASSERT.test(module) && /^(default|strict)$/.test(from.name))
    return { library: 'assert', strict: /strict$/.test(module) || from.name === 'strict', from };
  if (module === 'chai' && from.name === 'expect') return { library: 'chai', from };
  if (/^(chai|vitest)$/.test(module) && from.name === 'assert') return { library: 'chai-assert', from };
  if (/^(vitest|@jest\/globals|expect)$/.test(module) && /^(expect|default)$/.test(from.name))
    return { library: 'expect', from };
  return null;
}

function mostly(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/** The statement that brings in a name and nothing else, as it stands in the file. */
function own(program, source, name) {
  const found = program.body.find((node) => {
    if (node.type === 'ImportDeclaration')
      return node.specifiers.length === 1 && node.specifiers[0].local.name === name;
    return (
      node.type === 'VariableDeclaration' &&
      node.declarations.length === 1 &&
      node.declarations[0].id.name === name &&
      required(node.declarations[0].init).module
    );
  });
  return found ? source.slice(found.start, found.end) : null;
}

/** One statement for one name. */
export function statement({ mark, semi, syntax, declare = 'const' }, local, module, name) {
  const from = `${mark}${module.replaceAll('\\', '\\\\').replaceAll(mark, `\\${mark}`)}${mark}`; // a file's name may hold one
  const end = semi ? ';' : '';
  if (syntax === 'require') {
    if (declare === 'var' && name !== 'default') return `var ${local} = require(${from}).${name}${end}`;
    const part = name === 'default' ? local : `{ ${local === name ? name : `${name}: ${local}`} }`;
    return `${declare} ${part} = require(${from})${end}`;
  }
  const part = name === 'default' ? local : `{ ${local === name ? name : `${name} as ${local}`} }`;
  return `import ${part} from ${from}${end}`;
}
