/**
 * Inputs worked out rather than searched for: strings that a pattern and its mutant treat differently, put where a program
 * gives a string.
 */

import { samples } from './pattern.mjs';
import { lit } from './program.mjs';
import { sites } from './values.mjs';

const MOST = 16; // strings for one mutant
const PROBES = ['x', 'X', '0', '5', ' ', '-', '.', ',', '\n', '_', 'é'];
const SEEDS = 32;

/** Strings, the shortest first, that two regular expressions (as source text) do not match in the same way. */
export function differences(original, mutated, known = []) {
  const [a, b] = [expressionOf(original), expressionOf(mutated)];
  if (!a || !b) return [];
  const starts = [
    ...new Set([...samples(a.source, a.flags), ...samples(b.source, b.flags), ...known.filter((s) => s.length < 40)]),
  ].slice(0, SEEDS);
  const found = new Set();
  for (const text of [...starts, ...starts.flatMap((s) => [...edits(s)])]) {
    if (says(a, text) !== says(b, text)) found.add(text);
    if (found.size > 200) break;
  }
  return [...found].sort((x, y) => x.length - y.length || (x < y ? -1 : 1)).slice(0, MOST);
}

function expressionOf(text) {
  const parts = /^\/(.*)\/([a-z]*)$/s.exec(text);
  try {
    return parts && new RegExp(parts[1], parts[2].replace(/[gy]/g, '') + 'g');
  } catch {
    return null;
  }
}

const says = (expression, text) => JSON.stringify([...text.matchAll(expression)].map((m) => [m.index, ...m]));

function* edits(text) {
  for (let at = 0; at <= text.length; at++) {
    for (const probe of PROBES) yield text.slice(0, at) + probe + text.slice(at);
    if (at < text.length) {
      yield text.slice(0, at) + text.slice(at + 1);
      yield text.slice(0, at) + text[at].repeat(2) + text.slice(at);
      for (const probe of PROBES) yield text.slice(0, at) + probe + text.slice(at + 1);
    }
  }
  yield text + text;
  yield `${text} ${text}`;
}

/** Does a program give a string that the pattern matches, or a part of it? */
export function givesMatch(program, { original }, variations) {
  const expression = expressionOf(original);
  const isMatched = (v) => typeof v === 'string' && [...v.matchAll(expression)].some((m) => m[0]);
  return sites(program, variations).some(({ expr }) => expr.k === 'lit' && isMatched(expr.v));
}

/** Programs near `program` that give one of the strings: in place of a string, or of the part of one that matches. */
export function witnesses(program, { original }, strings, variations) {
  const expression = expressionOf(original);
  return sites(program, variations).flatMap(({ expr, put }) => {
    if (expr.k !== 'lit' || typeof expr.v !== 'string') return [];
    const [match] = [...expr.v.matchAll(expression)].filter((m) => m[0]);
    const within = (s) =>
      match && match[0].length < expr.v.length
        ? [expr.v.slice(0, match.index) + s + expr.v.slice(match.index + match[0].length)]
        : [];
    return strings.flatMap((s) => [s, ...within(s)]).map((s) => put(lit(s)));
  });
}
