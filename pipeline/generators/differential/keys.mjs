/** Which keys are read from which objects, also where an object is handed on under another name. */

import { nameOf, nodes, patternKeys, propertyName, remember } from './source.mjs';

export function collectKeys(tree, { keys, wanted }) {
  for (const [node, ancestors] of nodes(tree.program)) {
    if (/CallExpression$/.test(node.type) && /^(includes|indexOf|has)$/.test(propertyName(node.callee) ?? ''))
      remember(wanted, nameOf(node.callee.object), nameOf(node.arguments[0]));
    if (node.type === 'VariableDeclarator' && node.id.type === 'ObjectPattern')
      for (const name of namesIn(node.init)) for (const key of patternKeys(node.id)) remember(keys, name, key);
    if (!/MemberExpression$/.test(node.type) || node.computed || node.property.type !== 'Identifier') continue;
    const parent = ancestors.at(-1);
    if (/CallExpression$/.test(parent?.type) && parent.callee === node) continue;
    const { object } = node;
    const name = object.type === 'Identifier' ? object.name : (object.property?.id?.name ?? object.property?.name);
    if (name && node.property.name !== 'length') remember(keys, name.replace(/^_+/, ''), node.property.name);
  }
}

/** [from, to] for each object that is handed on: `to` is what it, or a copy of it, is called then. */
export function collectPassing(tree, { functions }, passed) {
  for (const [node] of nodes(tree.program)) {
    if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier')
      for (const from of namesIn(node.init)) passed.push([from, node.id.name]);
    if (node.type === 'AssignmentExpression' && nameOf(node.left))
      for (const from of namesIn(node.right)) passed.push([from, nameOf(node.left)]);
    if (!/^(Call|New)Expression$/.test(node.type)) continue;
    const name = nameOf(node.callee);
    const params = (functions.get(name) ?? functions.get(`${name}.constructor`))?.params ?? [];
    node.arguments.forEach((argument, i) => {
      for (const from of namesIn(argument)) if (params[i]) passed.push([from, params[i].name]);
    });
  }
}

/** The names whose object an expression is, or is a copy of. */
function namesIn(node) {
  switch (node?.type) {
    case 'Identifier':
      return [node.name];
    case 'MemberExpression':
      return node.computed ? [] : [propertyName(node)];
    case 'ObjectExpression':
      return node.properties.filter((p) => p.type === 'SpreadElement').flatMap((p) => namesIn(p.argument));
    case 'LogicalExpression':
      return [...namesIn(node.left), ...namesIn(node.right)];
    case 'ConditionalExpression':
      return [...namesIn(node.consequent), ...namesIn(node.alternate)];
    case 'TSAsExpression':
      return namesIn(node.expression);
    case 'CallExpression':
      return propertyName(node.callee) === 'assign' ? node.arguments.flatMap(namesIn) : [];
    default:
      return [];
  }
}

/** Adds to the keys of each object those that are read once it has been handed on. keys: name → Set of keys. */
export function passOn(passed, keys) {
  for (let round = 0; round < 4; round++)
    for (const [from, to] of passed) if (from !== to) for (const key of keys.get(to) ?? []) remember(keys, from, key);
}
