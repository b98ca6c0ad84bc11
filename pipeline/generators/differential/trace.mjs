/**
 * What the original compares: its source with every comparison noted, and the inputs that make two compared values
 * equal, or one apart. That is where mutants of conditions differ.
 */

import { lit, record } from './program.mjs';
import { isFunction, literalOf, nameOf, nodes } from './source.mjs';
import { sites } from './values.mjs';

const COMPARISONS = new Set(['===', '!==', '==', '!=', '<', '<=', '>', '>=']);
export const COMPARED = '__compared__'; // a global function of a traced module: (place, operator, left, right) → boolean
export const CHOSEN = '__chosen__'; // another: (place, value) → value, of what || && ?? decide by

/**
 * { text, places }: `a < b` as `__compared__(7, '<', a , b)`, `a ?? b` as `__chosen__(8, a ) ?? b`, and `a ??= b` as
 * `a ??= __chosen__(9, b)`. places: [{ file, line, until, within, names: [left, right] }], numbered from `first` on;
 * `within` are the lines of the function around.
 */
export function traced(project, file, text, first = 0) {
  const edits = [];
  const places = [];
  for (const [node, ancestors] of nodes(project.parse(text).program)) {
    const isComparison = node.type === 'BinaryExpression' && COMPARISONS.has(node.operator);
    const isAssignment = node.type === 'AssignmentExpression' && /^(\|\||&&|\?\?)=$/.test(node.operator);
    if (!isComparison && !isAssignment && node.type !== 'LogicalExpression') continue;
    const between = text.slice(node.left.end, node.right.start);
    if (/\/[/*]/.test(between)) continue; // a comment may hold the operator too
    const at = node.left.end + between.indexOf(node.operator);
    const order = ancestors.length;
    const place = first + places.length;
    const { loc: within } = ancestors.findLast(isFunction) ?? node;
    places.push({ file, ...linesOf(node.loc), within: linesOf(within), names: [node.left, node.right].map(sideOf) });
    if (isComparison) {
      edits.push({ at: node.start, until: node.start, text: `${COMPARED}(${place}, '${node.operator}', `, order });
      edits.push({ at, until: at + node.operator.length, text: ',', order: 0 });
      edits.push({ at: node.end, until: node.end, text: ')', order: -order });
    } else if (isAssignment) {
      const start = at + node.operator.length;
      edits.push({ at: start, until: start, text: ` ${CHOSEN}(${place}, `, order: 0 });
      edits.push({ at: node.end, until: node.end, text: ')', order: -order });
    } else {
      edits.push({ at: node.start, until: node.start, text: `${CHOSEN}(${place}, `, order });
      edits.push({ at, until: at, text: ')', order: 0 });
    }
  }
  edits.sort((a, b) => a.at - b.at || a.order - b.order);
  let result = '';
  let from = 0;
  for (const edit of edits) {
    result += text.slice(from, edit.at) + edit.text;
    from = edit.until;
  }
  return { text: result + text.slice(from), places };
}

const sideOf = (node) => (literalOf(node) === undefined ? (nameOf(node) ?? '') : null); // null: nothing moves it

const linesOf = ({ start, end }) => ({ line: start.line, until: end.line });

/**
 * Ways to programs near `program` in which a pair of compared values would meet: `named` by giving an object a key that is
 * compared and that it lacks, `moved` by changing an input. pairs: [{ a, b, names }].
 */
export function meetings(program, pairs, variations) {
  const all = sites(program, variations);
  const leaves = all.filter(({ expr }) => expr.k === 'lit' && ['number', 'string'].includes(typeof expr.v));
  const records = all.filter(({ expr }) => expr.k === 'record');
  const factors = [
    ...new Set(leaves.map(({ expr }) => expr.v).filter((v) => Number.isInteger(v) && v > 1 && v < 1000)),
  ];
  const [named, moved] = [[], []];
  for (const { a: left, b: right, names } of pairs) {
    for (const [a, b, name] of [
      [left, right, names[0]],
      [right, left, names[1]],
    ]) {
      if (name === null) continue;
      for (const { expr, put } of leaves) {
        for (const v of typeof b === 'number' ? numbersFor(expr.v, a, b, factors) : stringsFor(expr.v, a, b))
          if (!Object.is(v, expr.v)) moved.push(() => put(lit(v)));
      }
      // What is compared may be what an object has under a key of that name, or would have.
      for (const { expr, name: of, put } of records) {
        if (!['number', 'string'].includes(typeof b) || !variations.missingKeys(expr, of).includes(name)) continue;
        for (const v of typeof b === 'number' ? [b, b + 1, b - 1] : [b])
          named.push(() => put(record([...expr.entries, [name, lit(v)]])));
      }
    }
  }
  return { named, moved };
}

/** Values for an input `v` that may move `a` to `b`: by being it, by a sum, or by a product. */
function numbersFor(v, a, b, factors) {
  if (typeof a !== 'number' || !Number.isFinite(a) || !Number.isFinite(b)) return [];
  if (typeof v === 'string') return /\d/.test(v) ? stringsFor(v, String(a), String(b)) : [];
  const found = v === a ? [b, b + 1, b - 1] : [];
  found.push(v + b - a, v + b - a + 1, v + b - a - 1);
  const scaled = [a && (v * b) / a, ...factors.map((factor) => v + (b - a) / factor)];
  for (const n of scaled) found.push(...(Number.isInteger(v) ? [Math.floor(n), Math.ceil(n)] : [n]));
  const likely = (n) => n === b || Math.abs(n) <= 1000 * Math.max(Math.abs(v), 10);
  return [...new Set(found)].filter((n) => Number.isFinite(n) && likely(n));
}

function stringsFor(v, a, b) {
  if (typeof v !== 'string' || typeof a !== 'string' || typeof b !== 'string') return [];
  if (v === a) return [b];
  return a !== '' && v.includes(a) ? [v.replace(a, () => b)] : [];
}
