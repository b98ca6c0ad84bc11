/**
 * What the source says about inputs: the literals in it, its functions' parameters and the kinds of value they take,
 * the keys of option objects, and whether modules keep state. Reads syntax trees; runs nothing.
 */

import { samples } from './pattern.mjs';
import { collectKeys, collectPassing, passOn } from './keys.mjs';
import { collectTypes, meaning } from './types.mjs';

export const parseSource = (parser, text) =>
  parser.parse(text, {
    sourceType: 'unambiguous',
    plugins: ['typescript', 'jsx'],
    errorRecovery: true,
    allowReturnOutsideFunction: true,
  });

const walked = new WeakMap(); // node → its nodes: trees are read several times, and never changed

/** Every node below `node`, itself first, with its ancestors from there on, nearest last: [[node, ancestors]]. */
export function nodes(node) {
  if (!walked.has(node)) walked.set(node, nodesBelow(node, [], []));
  return walked.get(node);
}

function nodesBelow(node, ancestors, found) {
  found.push([node, ancestors]);
  const inner = [...ancestors, node];
  for (const key of Object.keys(node)) {
    const value = node[key];
    if (value === null || typeof value !== 'object' || key === 'loc' || key.endsWith('Comments')) continue;
    if (Array.isArray(value)) for (const child of value) child && typeof child.type === 'string' && nodesBelow(child, inner, found);
    else if (typeof value.type === 'string') nodesBelow(value, inner, found);
  }
  return found;
}

export const isFunction = (node) =>
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|ClassMethod|ClassPrivateMethod|ObjectMethod)$/.test(
    node?.type ?? '',
  );

/** The value of a literal node; undefined for everything else. */
export function literalOf(node) {
  switch (node?.type) {
    case 'NumericLiteral':
    case 'StringLiteral':
    case 'BooleanLiteral':
      return node.value;
    case 'TemplateLiteral':
      return node.expressions.length ? undefined : node.quasis[0].value.cooked;
    case 'UnaryExpression': {
      const v = literalOf(node.argument);
      return node.operator === '-' && typeof v === 'number' ? -v : undefined;
    }
    default:
      return undefined;
  }
}

export const propertyName = (node) =>
  node.computed
    ? literalOf(node.property ?? node.key)
    : ((node.property ?? node.key)?.name ?? literalOf(node.property ?? node.key));

const STRING_METHODS =
  /^(toLowerCase|toUpperCase|trim|trimStart|trimEnd|split|replace|replaceAll|charAt|charCodeAt|codePointAt|normalize|startsWith|endsWith|padStart|padEnd|match|matchAll|substring|substr|repeat|search|localeCompare)$/;
const ARRAY_METHODS =
  /^(map|filter|reduce|reduceRight|push|pop|shift|unshift|forEach|some|every|find|findIndex|sort|join|flat|flatMap|fill|splice|reverse)$/;
const DATE_METHODS = /^([gs]et(UTC)?(FullYear|Month|Date|Day|Hours|Minutes|Seconds|Milliseconds|Time)|toISOString|getTimezoneOffset)$/;
const CHANGING = /^(push|pop|shift|unshift|splice|sort|reverse|fill|set|add|delete|clear)$/;
const CODES = /^(charCodeAt|codePointAt)$/;
const EITHER_METHODS = /^(length|slice|includes|indexOf|lastIndexOf|concat|at)$/;

/**
 * { numbers, strings, named, functions, classes, parents, fields, keys, kinds, wanted, types, groups, readsCodes } of all `sources` (file → text) together.
 * named: name of a parameter, variable or key → literals compared with it. functions: name or Class.name → { params }.
 * parents: name of a class → that of the one it extends. fields: name of a function or of an object's method → those of `this`
 * that it assigns. keys: name of a variable, parameter or field → the keys read from it. kinds: name → the kind of value of its default;
 * asked: name → those that `typeof` is compared with.
 * wanted: name of a list or set → the names of what is looked for in it. groups: texts that stand for each other: what one
 * pattern matches, the cases of one switch, the items of one list. readsCodes: are there codes of characters in it?
 */
export function study(project, sources, declared = []) {
  const knowledge = {
    numbers: new Set(),
    strings: new Set(),
    named: new Map(),
    functions: new Map(),
    classes: new Map(),
    parents: new Map(),
    fields: new Map(),
    keys: new Map(),
    kinds: new Map(),
    asked: new Map(),
    wanted: new Map(),
    types: new Map(),
    groups: [],
    readsCodes: false,
  };
  const trees = Object.values(sources).map((text) => project.parse(text));
  const others = declared.map((text) => project.parse(text));
  for (const tree of [...others, ...trees]) collectTypes(tree, knowledge.types);
  for (const tree of others) collectFunctions(tree, knowledge);
  const passed = [];
  for (const tree of trees) {
    collectLiterals(tree, knowledge);
    collectFunctions(tree, knowledge);
    collectKeys(tree, knowledge);
    collectPassing(tree, knowledge, passed);
  }
  passOn(passed, knowledge.keys);
  return knowledge;
}

export function remember(named, name, value) {
  if (!name || value === undefined) return;
  if (!named.has(name)) named.set(name, new Set());
  named.get(name).add(value);
}

export const nameOf = (node) =>
  node?.type === 'Identifier' ? node.name : /MemberExpression$/.test(node?.type) ? propertyName(node) : undefined;

function collectLiterals(tree, knowledge) {
  const { numbers, strings, named, kinds, asked, groups } = knowledge;
  for (const [node, ancestors] of nodes(tree.program)) {
    const value = literalOf(node);
    const parent = ancestors.at(-1);
    if (/^(Import|Export).*Declaration$/.test(parent?.type)) continue;
    if (typeof value === 'number') numbers.add(value);
    if (typeof value === 'string' && value.length < 80) strings.add(value);
    if (node.type === 'TemplateElement' && node.value.cooked && node.value.cooked.length < 20)
      strings.add(node.value.cooked);
    if (node.type === 'RegExpLiteral') {
      const texts = samples(node.pattern, node.flags);
      for (const text of texts) strings.add(text);
      groups.push(texts);
    }
    if (node.type === 'ArrayExpression') groups.push(textsOf(node.elements));
    knowledge.readsCodes ||= node.type === 'Identifier' && CODES.test(node.name);
    if (node.type === 'BinaryExpression') {
      remember(named, nameOf(node.left), literalOf(node.right));
      remember(named, nameOf(node.right), literalOf(node.left));
      collectAsked(node, asked);
    }
    if (node.type === 'SwitchStatement') {
      for (const { test } of node.cases) remember(named, nameOf(node.discriminant), literalOf(test));
      groups.push(textsOf(node.cases.map(({ test }) => test)));
    }
    if (node.type === 'AssignmentPattern') {
      remember(named, nameOf(node.left), literalOf(node.right));
      if (kindOfDefault(node.right)) kinds.set(nameOf(node.left), kindOfDefault(node.right));
    }
    if (node.type === 'LogicalExpression') remember(named, nameOf(node.left), literalOf(node.right));
    // A lookup table's keys are what somebody looks up in it.
    if (node.type === 'ObjectProperty' && !node.computed && ancestors.at(-2)?.type === 'VariableDeclarator')
      strings.add(propertyName(node));
  }
}

const textsOf = (some) => some.map(literalOf).filter((v) => typeof v === 'string');

/** `typeof x === 'function'` says what x may be. */
function collectAsked({ left, right }, asked) {
  const name = left.type === 'UnaryExpression' && left.operator === 'typeof' ? nameOf(left.argument) : undefined;
  const kind = literalOf(right);
  if (/^(string|number|boolean|function)$/.test(kind)) remember(asked, name, kind);
}

function collectFunctions(tree, knowledge) {
  const { functions, classes } = knowledge;
  for (const [node, ancestors] of nodes(tree.program)) {
    const parent = ancestors.at(-1);
    if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') {
      const name = node.id?.name ?? (parent?.type === 'VariableDeclarator' ? parent.id.name : null);
      if (name) classes.set(name, membersOf(node));
      if (name && node.superClass?.name) knowledge.parents.set(name, node.superClass.name);
    }
    if (!isFunction(node) && node.type !== 'TSDeclareFunction') continue;
    const owner = /^Class/.test(node.type) ? (ancestors.at(-2)?.id?.name ?? '') : '';
    const name = functionName(node, ancestors);
    if (!name) continue;
    if (!owner && node.body) for (const field of assigned(node)) remember(knowledge.fields, name, field);
    const key = owner ? `${owner}.${name}` : name;
    const declared = functions.get(key)?.params ?? [];
    functions.set(key, { params: node.params.map((p, i) => merged(parameter(p, node, knowledge), declared[i])) });
  }
}

/** The fields of its own `this` that a function assigns. */
function assigned(fn) {
  const found = [];
  for (const [node, ancestors] of nodes(fn.body)) {
    const changed = node.type === 'CallExpression' && CHANGING.test(propertyName(node.callee) ?? '') ? node.callee.object : null;
    const target = node.type === 'AssignmentExpression' ? node.left : node.type === 'UpdateExpression' ? node.argument : changed;
    const isOwn = target?.object?.type === 'ThisExpression' && target.property.type === 'Identifier' && !target.computed;
    if (isOwn && !ancestors.some((a) => isFunction(a) && a.type !== 'ArrowFunctionExpression')) found.push(propertyName(target));
  }
  return found;
}

/** What a declaration beside the source says of a parameter, where the source itself says nothing. */
function merged(own, declared) {
  if (!declared) return own;
  const keys = [...new Set([...own.keys, ...declared.keys])];
  return { ...own, optional: own.optional || declared.optional, kind: declared.kind ?? own.kind, keys };
}

/** A function's own name, or that of what it is given to; `outer()` for one that `outer` returns. */
export function functionName(node, ancestors) {
  const parent = ancestors.at(-1);
  if (node.id?.name) return node.id.name;
  if (parent?.type === 'VariableDeclarator') return parent.id.name;
  if (node.key) return propertyName(node);
  if (parent?.type === 'ExportDefaultDeclaration') return 'default';
  if (parent?.type === 'AssignmentExpression') return nameOf(parent.left);
  if (parent?.type === 'ObjectProperty' || /^Class\w*Property$/.test(parent?.type)) return propertyName(parent);
  const at = ancestors.findLastIndex(isFunction);
  const isReturned =
    at >= 0 && (parent.type === 'ReturnStatement' ? ancestors.length - at === 3 : parent.body === node);
  const outer = isReturned ? functionName(ancestors[at], ancestors.slice(0, at)) : null;
  return outer ? `${outer}()` : null;
}

function membersOf(cls) {
  const members = new Map();
  for (const member of cls.body.body) {
    const name = member.key && propertyName(member);
    if (!name || member.type === 'ClassPrivateMethod' || member.type === 'ClassPrivateProperty') continue;
    if (member.kind === 'constructor' || member.kind === 'set') continue;
    const makesOne = member.kind === 'method' && returnsOne(member, cls.body.body);
    members.set(name, { name, isStatic: Boolean(member.static), call: member.kind === 'method', makesOne });
  }
  for (const [node] of nodes(cls.body)) {
    const target = node.type === 'AssignmentExpression' ? node.left : null;
    if (target?.object?.type !== 'ThisExpression' || target.property.type !== 'Identifier') continue;
    const name = propertyName(target);
    if (name && !name.startsWith('_') && !members.has(name))
      members.set(name, { name, isStatic: false, call: false, makesOne: false });
  }
  return [...members.values()];
}

/** Does a method return an object that is of its class, as far as can be seen: itself, or a new one? */
function returnsOne(method, members, depth = 0) {
  const made = new Set();
  if (!method.body) return false; // it is declared only: an abstract one, an overload
  for (const [node, ancestors] of nodes(method.body)) {
    if (node.type === 'VariableDeclarator' && node.init?.type === 'NewExpression') made.add(node.id.name);
    if (node.type !== 'ReturnStatement' || ancestors.some(isFunction)) continue;
    const { type, name, callee } = node.argument ?? {};
    if (type === 'ThisExpression' || type === 'NewExpression' || (type === 'Identifier' && made.has(name))) return true;
    if (callee?.object?.type !== 'ThisExpression' || depth > 4) continue;
    const next = members.find((m) => m.key && propertyName(m) === propertyName(callee));
    if (next?.body && next !== method && returnsOne(next, members, depth + 1)) return true;
  }
  return false;
}

/** The kind of value that a default says is meant. */
function kindOfDefault(node) {
  if (node?.type === 'ArrayExpression') return 'list';
  if (node?.type === 'ObjectExpression') return 'record';
  const value = literalOf(node);
  return value === undefined ? null : typeof value;
}

/** { name, optional, kind, keys } of one parameter: by its declared type, else guessed from how the body uses it. */
function parameter(node, fn, knowledge) {
  const hasDefault = node.type === 'AssignmentPattern';
  const target = hasDefault ? node.left : node.type === 'TSParameterProperty' ? node.parameter : node;
  const optional = hasDefault || Boolean(target.optional);
  const { kinds, keys: typed } = declaredBy(target, knowledge);
  const [declared] = kinds;
  if (target.type === 'ObjectPattern')
    return { name: 'options', optional, kind: 'record', keys: [...new Set([...patternKeys(target), ...typed])] };
  if (target.type !== 'Identifier')
    return { name: 'rest', optional: true, kind: target.type === 'ArrayPattern' ? 'list' : null, keys: [] };
  const { kind, keys } = fn.body ? usage(target.name, fn) : { kind: null, keys: [] };
  const guessed = (hasDefault ? kindOfDefault(node.right) : null) ?? kind;
  return { name: target.name, optional, kind: declared ?? guessed, keys: [...new Set([...keys, ...typed])] };
}

/** What the type of a parameter says; its literals and those of its keys are remembered under their names. */
function declaredBy(target, { types, named, kinds, keys }) {
  const said = meaning(target.typeAnnotation?.typeAnnotation, types);
  for (const value of said.literals) remember(named, target.name, value);
  for (const [key, type] of said.keys) {
    const inner = meaning(type, types);
    const [kind] = inner.kinds;
    if (kind && !kinds.has(key)) kinds.set(key, kind);
    for (const value of inner.literals) remember(named, key, value);
    for (const name of inner.keys.keys()) remember(keys, key, name);
  }
  return { kinds: said.kinds, keys: said.keys.keys() };
}

export const patternKeys = (pattern) =>
  pattern.properties.filter((p) => p.type === 'ObjectProperty' && !p.computed).map(propertyName);

function usage(name, fn) {
  const votes = {};
  const keys = new Set();
  const vote = (kind, weight = 1) => (votes[kind] = (votes[kind] ?? 0) + weight);
  for (const [node, ancestors] of nodes(fn.body)) {
    if (node.type !== 'Identifier' || node.name !== name) continue;
    const parent = ancestors.at(-1);
    if (/MemberExpression$/.test(parent?.type) && parent.object === node) {
      const member = propertyName(parent);
      if (member === undefined) vote('list', 0.5);
      else if (STRING_METHODS.test(member)) vote('string', 2);
      else if (ARRAY_METHODS.test(member)) vote('list', 2);
      else if (EITHER_METHODS.test(member)) (vote('string'), vote('list'));
      else if (/^(toFixed|toPrecision)$/.test(member)) vote('number', 2);
      else if (DATE_METHODS.test(member)) vote('date', 2);
      else (vote('record'), keys.add(member));
    } else if (parent?.type === 'BinaryExpression') {
      const other = literalOf(parent.left === node ? parent.right : parent.left);
      vote(other === undefined ? (/^[-*/%<>]|<=|>=/.test(parent.operator) ? 'number' : 'any') : typeof other);
    } else if (/^(ForOfStatement|SpreadElement)$/.test(parent?.type)) vote('list', 2);
    else if (parent?.type === 'TemplateLiteral') vote('string', 0.5);
    else if (parent?.type === 'CallExpression' && parent.callee === node) vote('function', 3);
    else if (parent?.type === 'VariableDeclarator' && parent.id.type === 'ObjectPattern')
      (vote('record', 2), patternKeys(parent.id).forEach((k) => keys.add(k)));
  }
  const [best] = Object.entries(votes)
    .filter(([kind]) => kind !== 'any')
    .sort((a, b) => b[1] - a[1]);
  return { kind: best?.[0] ?? null, keys: [...keys] };
}

/** A text with edits { at, until, text, order } made in it; of those at one place the lower order comes first. */
export function edited(source, edits) {
  edits.sort((a, b) => a.at - b.at || a.order - b.order);
  let result = '';
  let from = 0;
  for (const { at, until, text } of edits) {
    result += source.slice(from, at) + text;
    from = until;
  }
  return result + source.slice(from);
}
