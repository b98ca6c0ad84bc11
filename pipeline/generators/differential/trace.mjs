/**
 * The source with everything noted that it decides by: comparisons, choices, and lookups, which compare a key with those
 * that are there.
 */

import { edited, isFunction, literalOf, nameOf, nodes, propertyName } from './source.mjs';

const COMPARISONS = new Set(['===', '!==', '==', '!=', '<', '<=', '>', '>=']);
const SOUGHT = /^(includes|indexOf|lastIndexOf|has|get|startsWith|endsWith)$/;
export const COMPARED = '__compared__'; // a global function of a traced module: (place, operator, left, right) → boolean
export const CHOSEN = '__chosen__'; // another: (place, value) → value, of what || && ?? decide by
export const LOOKED = '__looked__'; // (place, where, key) → key
export const SWITCHED = '__switched__'; // (place, value, the cases that are literals) → value
export const UNTOLD = 2 ** 30; // from here on, places of code whose places nobody asks for
const DECIDES = /^(((Optional)?(Member|Call)|Binary|Logical|Assignment)Expression|SwitchStatement)$/;
const ENGINES_OWN = /^stry(NS|Cov|MutAct)_/; // functions of StrykerJS in an instrumented file

/**
 * { text, places }: `a < b` as `__compared__(7, '<', a , b)`, `a ?? b` as `__chosen__(8, a ) ?? b`, `a ??= b` as
 * `a ??= __chosen__(9, b)`, `o[k]` as `o[__looked__(10, o, k)]`. places: [{ file, line, until, within, names: [left, right] }],
 * numbered from `first` on; `within` are the lines of the function around.
 */
export function traced(project, file, text, first = 0) {
  const edits = [];
  const places = [];
  const around = (node, order, head, tail) => {
    edits.push({ at: node.start, until: node.start, text: head, order });
    edits.push({ at: node.end, until: node.end, text: tail, order: -order });
  };
  const newPlace = (node, ancestors, sides) => {
    const { loc: within } = ancestors.findLast(isFunction) ?? node;
    places.push({ file, ...linesOf(node.loc), within: linesOf(within), names: sides.map(sideOf) });
    return first + places.length - 1;
  };
  for (const [node, ancestors] of nodes(project.parse(text).program)) {
    if (!DECIDES.test(node.type)) continue;
    const order = ancestors.length;
    if (ancestors.some((a) => ENGINES_OWN.test(a.id?.name ?? ''))) continue;
    const sought = soughtBy(node);
    if (sought) {
      const place = newPlace(node, ancestors, literalOf(sought.key) === undefined ? [sought.key] : [sought.where]);
      const { start, end } = sought.where;
      around(sought.key, order, `${LOOKED}(${place}, ${text.slice(start, end)}, (`, '))');
    }
    if (node.type === 'SwitchStatement') {
      const cases = node.cases.map(({ test }) => literalOf(test)).filter((v) => v !== undefined);
      const { discriminant } = node;
      const place = newPlace(discriminant, ancestors, [discriminant]);
      around(discriminant, order, `${SWITCHED}(${place}, (`, `), ${JSON.stringify(cases)})`);
    }
    const isComparison = node.type === 'BinaryExpression' && COMPARISONS.has(node.operator);
    const isAssignment = node.type === 'AssignmentExpression' && /^(\|\||&&|\?\?)=$/.test(node.operator);
    if (!isComparison && !isAssignment && node.type !== 'LogicalExpression') continue;
    const between = text.slice(node.left.end, node.right.start);
    if (/\/[/*]/.test(between)) continue; // a comment may hold the operator too
    const at = node.left.end + between.indexOf(node.operator);
    const place = newPlace(node, ancestors, [node.left, node.right]);
    if (isComparison) {
      around(node, order, `${COMPARED}(${place}, '${node.operator}', `, ')');
      edits.push({ at, until: at + node.operator.length, text: ',', order: 0 });
    } else if (isAssignment) {
      const start = at + node.operator.length;
      edits.push({ at: start, until: start, text: ` ${CHOSEN}(${place}, `, order: 0 });
      edits.push({ at: node.end, until: node.end, text: ')', order: -order });
    } else {
      edits.push({ at: node.start, until: node.start, text: `${CHOSEN}(${place}, `, order });
      edits.push({ at, until: at, text: ')', order: 0 });
    }
  }
  return { text: edited(text, edits), places };
}

const sideOf = (node) => (literalOf(node) === undefined ? (nameOf(node) ?? '') : null); // null: nothing moves it

const linesOf = ({ start, end }) => ({ line: start.line, until: end.line });

/** { where, key } of a lookup: of a key that is computed, in what may be named twice without doing anything twice. */
function soughtBy(node) {
  let found = null;
  if (/^(Optional)?MemberExpression$/.test(node.type) && node.computed) found = { where: node.object, key: node.property };
  if (/^(Optional)?CallExpression$/.test(node.type) && node.arguments.length === 1 && SOUGHT.test(propertyName(node.callee) ?? ''))
    found = { where: node.callee.object, key: node.arguments[0], isFixed: true };
  if (node.type === 'BinaryExpression' && node.operator === 'in') found = { where: node.right, key: node.left };
  const isPlain = found && isPath(found.where) && found.key.type !== 'SpreadElement' && found.key.type !== 'PrivateName';
  return isPlain && (found.isFixed || literalOf(found.key) === undefined) ? found : null;
}

const isPath = (node) =>
  /^(Identifier|ThisExpression)$/.test(node.type) ||
  (node.type === 'MemberExpression' && !node.computed && node.property.type === 'Identifier' && isPath(node.object));
