/**
 * What the original compares: its source with every comparison noted, and the inputs that make two compared values
 * equal, or one apart. That is where mutants of conditions differ.
 */

import { lit } from './program.mjs';
import { nodes, parseSource } from './source.mjs';
import { sites } from './values.mjs';

const COMPARISONS = new Set(['===', '!==', '==', '!=', '<', '<=', '>', '>=']);
export const NOTE = '__compared__'; // the global function that a traced module calls: (operator, left, right) → boolean

/** `text` with each comparison `a < b` as `__compared__('<', a , b)`. */
export function traced(parser, text) {
  const edits = [];
  for (const [node, ancestors] of nodes(parseSource(parser, text).program)) {
    if (node.type !== 'BinaryExpression' || !COMPARISONS.has(node.operator)) continue;
    const between = text.slice(node.left.end, node.right.start);
    if (/\/[/*]/.test(between)) continue; // a comment may hold the operator too
    const at = node.left.end + between.indexOf(node.operator);
    const depth = ancestors.length;
    edits.push({ at: node.start, until: node.start, text: `${NOTE}('${node.operator}', `, order: depth });
    edits.push({ at, until: at + node.operator.length, text: ',', order: 0 });
    edits.push({ at: node.end, until: node.end, text: ')', order: -depth });
  }
  edits.sort((a, b) => a.at - b.at || a.order - b.order);
  let result = '';
  let from = 0;
  for (const edit of edits) {
    result += text.slice(from, edit.at) + edit.text;
    from = edit.until;
  }
  return result + text.slice(from);
}

/** Programs near `program` in which a pair of compared values would meet. pairs: [[left, right]] as noted in its run. */
export function meetings(program, pairs, variations) {
  const leaves = [...sites(program, variations)].filter(
    ({ expr }) => expr.k === 'lit' && ['number', 'string'].includes(typeof expr.v),
  );
  const factors = [
    ...new Set(leaves.map(({ expr }) => expr.v).filter((v) => Number.isInteger(v) && v > 1 && v < 1000)),
  ];
  const found = [];
  for (const [left, right] of pairs) {
    for (const [a, b] of [
      [left, right],
      [right, left],
    ]) {
      for (const { expr, put } of leaves) {
        for (const v of typeof b === 'number' ? numbersFor(expr.v, a, b, factors) : stringsFor(expr.v, a, b))
          if (!Object.is(v, expr.v)) found.push(() => put(lit(v)));
      }
    }
  }
  return found;
}

/** Values for an input `v` that may move `a` to `b`: by being it, by a sum, or by a product. */
function numbersFor(v, a, b, factors) {
  if (typeof a !== 'number' || !Number.isFinite(a) || !Number.isFinite(b)) return [];
  if (typeof v === 'string') return /\d/.test(v) ? stringsFor(v, String(a), String(b)) : [];
  const found = v === a ? [b, b + 1, b - 1] : [];
  found.push(v + b - a, v + b - a + 1, v + b - a - 1);
  if (a !== 0) found.push((v * b) / a);
  for (const factor of factors) found.push(v + (b - a) / factor);
  const likely = (n) => n === b || Math.abs(n) <= 1000 * Math.max(Math.abs(v), 10);
  return [...new Set(found)].filter(
    (n) => Number.isFinite(n) && likely(n) && (Number.isInteger(n) || !Number.isInteger(v)),
  );
}

function stringsFor(v, a, b) {
  if (typeof v !== 'string' || typeof a !== 'string' || typeof b !== 'string') return [];
  if (v === a) return [b];
  return a !== '' && v.includes(a) ? [v.replace(a, () => b)] : [];
}
