/** What declared types say about inputs: kinds of value, keys of objects, the literals of a union. Syntax alone. */

import { literalOf } from './source.mjs';

const KEYWORDS = { TSStringKeyword: 'string', TSNumberKeyword: 'number', TSBooleanKeyword: 'boolean' };
const NAMED = { Array: 'list', ReadonlyArray: 'list', Iterable: 'list', Record: 'record', Date: 'date', Map: 'map', Set: 'set', RegExp: 'pattern', Function: 'function', String: 'string', Number: 'number' };
const DEEPEST = 6;

/** Interfaces and type aliases of a file, by name, into `types`. */
export function collectTypes(tree, types) {
  const visit = (statement) => {
    const node = statement.declaration ?? statement;
    if (node.type === 'TSInterfaceDeclaration') types.set(node.id.name, { type: 'TSTypeLiteral', members: node.body.body, extends: node.extends });
    if (node.type === 'TSTypeAliasDeclaration') types.set(node.id.name, node.typeAnnotation);
    if (node.type === 'TSEnumDeclaration') types.set(node.id.name, { type: 'TSUnionType', types: [] });
    if (node.type === 'TSModuleDeclaration') node.body?.body?.forEach(visit);
  };
  tree.program.body.forEach(visit);
}

/** { kinds, keys, literals } of a type: keys: Map name → the type of its value. */
export function meaning(type, types, depth = 0) {
  const found = { kinds: new Set(), keys: new Map(), literals: [] };
  if (!type || depth > DEEPEST) return found;
  const add = (other) => {
    const { kinds, keys, literals } = meaning(other, types, depth + 1);
    kinds.forEach((kind) => found.kinds.add(kind));
    keys.forEach((value, key) => found.keys.set(key, value));
    found.literals.push(...literals);
  };
  switch (type.type) {
    case 'TSArrayType':
    case 'TSTupleType':
      found.kinds.add('list');
      break;
    case 'TSFunctionType':
      found.kinds.add('function');
      break;
    case 'TSLiteralType': {
      const value = literalOf(type.literal);
      if (value !== undefined) (found.literals.push(value), found.kinds.add(typeof value));
      break;
    }
    case 'TSUnionType':
    case 'TSIntersectionType':
      type.types.forEach(add);
      break;
    case 'TSTypeOperator':
    case 'TSParenthesizedType':
    case 'TSOptionalType':
      add(type.typeAnnotation);
      break;
    case 'TSTypeLiteral':
      found.kinds.add('record');
      for (const base of type.extends ?? []) add({ type: 'TSTypeReference', typeName: base.expression });
      for (const member of type.members)
        if (/^TS(Property|Method)Signature$/.test(member.type) && member.key.name)
          found.keys.set(member.key.name, member.typeAnnotation?.typeAnnotation ?? { type: 'TSFunctionType' });
      break;
    case 'TSTypeReference': {
      const { name } = type.typeName;
      if (NAMED[name]) found.kinds.add(NAMED[name]);
      else if (types.has(name)) add(types.get(name));
      else if (/^(Partial|Required|Readonly|Pick|Omit|NonNullable)$/.test(name)) add((type.typeParameters ?? type.typeArguments)?.params[0]);
      break;
    }
    default:
      if (KEYWORDS[type.type]) found.kinds.add(KEYWORDS[type.type]);
  }
  return found;
}
