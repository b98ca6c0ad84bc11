/** The operator ** as a call: how it rounds, the language leaves to the engine as it does for Math.pow. */

import { edited, nodes, propertyName } from './source.mjs';
import { RAISED, RAISED_AT } from './world.mjs';

/** `a ** b` as `__raised__(a , b)`, `a **= b` as `a = __raised__(a, b)`, `f().a **= b` as `__raisedAt__(f(), 'a', b)`. */
export function withPowers(project, text) {
  if (!text.includes('**')) return text;
  const edits = [];
  const put = (at, until, order, words) => edits.push({ at, until, text: words, order });
  for (const [node, ancestors] of nodes(project.parse(text).program)) {
    const isPower = node.type === 'BinaryExpression' && node.operator === '**';
    if (!isPower && !(node.type === 'AssignmentExpression' && node.operator === '**=')) continue;
    const { left, right } = node;
    const order = ancestors.length;
    const between = text.slice(left.end, right.start);
    const at = left.end + between.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, (comment) => ' '.repeat(comment.length)).indexOf(node.operator);
    const until = at + node.operator.length;
    const plain = /^[\w$#.\s]+$/.test(text.slice(left.start, left.end)); // may be read twice
    if (isPower) {
      put(node.start, node.start, order, `${RAISED}(`);
      put(at, until, 0, ',');
    } else if (plain) {
      put(at, until, 0, `= ${RAISED}(${text.slice(left.start, left.end)}, `);
    } else if (left.object && left.object.type !== 'Super' && left.property.type !== 'PrivateName') {
      const { property, computed } = left;
      const opened = text.slice(0, property.start).lastIndexOf(computed ? '[' : '.'); // the object may be in brackets
      put(node.start, node.start, order, `${RAISED_AT}(`);
      if (computed) {
        put(opened, opened + 1, 0, ', ');
        put(left.end - 1, until, 0, ', ');
      } else put(opened, until, 0, `, '${propertyName(left)}', `);
    } else continue;
    put(node.end, node.end, -order, ')');
  }
  return edited(text, edits);
}
