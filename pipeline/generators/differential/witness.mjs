/**
 * Inputs worked out rather than searched for: strings that a pattern and its mutant treat differently, put where a program
 * gives a string.
 */

import { samples } from './pattern.mjs';
import { lit } from './program.mjs';
import { sites } from './values.mjs';

const MOST = 24; // strings for one mutant
const PROBES = ['x', 'X', '0', '5', ' ', '-', '.', ',', '\n', '_', 'é'];
const MOST_WITNESSES = 96; // programs near one
const SEEDS = 32;
const JOINED = 12; // given strings put before and after matching ones
const NONE = '[]';

/** Strings, the shortest first, that two regular expressions (as source text) do not match in the same way. */
export function differences(original, mutated, known = []) {
  const [a, b] = [expressionOf(original), expressionOf(mutated)];
  if (!a || !b) return [];
  const given = known.filter((s) => s.length < 40);
  const matched = [...samples(a.source, a.flags), ...samples(b.source, b.flags)];
  const starts = [...new Set([...matched, ...given])].slice(0, SEEDS);
  const joined = varied([...given]).slice(0, JOINED).flatMap((s) => matched.slice(0, JOINED).flatMap((m) => [s + m, m + s]));
  const [matching, reading] = [new Set(), new Set()]; // one of the two does not match; both do, in another way
  for (const text of [...starts, ...starts.flatMap((s) => [...edits(s)]), ...joined]) {
    const [one, other] = [says(a, text), says(b, text)];
    if (one !== other) (one === NONE || other === NONE ? matching : reading).add(text);
    if (matching.size > 400) break;
  }
  const [most, rest] = [matching, reading].map((some) => varied([...some]));
  return [...most.slice(0, MOST), ...rest].slice(0, MOST + 6);
}

/** The shortest first, and in turn those that begin or end in another character: the code may look at these before. */
function varied(texts) {
  texts.sort((x, y) => x.length - y.length || (x < y ? -1 : 1));
  return inTurn(texts, (text) => `${text[0]}${text.at(-1)}`);
}

/** The same items in another order: the first of every kind, then the second of every kind. */
export function inTurn(items, kindOf) {
  const groups = new Map();
  for (const item of items) groups.set(kindOf(item), [...(groups.get(kindOf(item)) ?? []), item]);
  const lists = [...groups.values()];
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, n) => lists.flatMap((list) => list.slice(n, n + 1))).flat();
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
  const texts = sites(program, variations).filter(({ expr }) => expr.k === 'lit' && typeof expr.v === 'string');
  const places = texts.map(({ expr: { v }, put }) => {
    const match = [...v.matchAll(expression)].find((m) => m[0]);
    const isPart = match && match[0].length < v.length;
    const within = (s) => put(lit(v.slice(0, match.index) + s + v.slice(match.index + match[0].length)));
    return [(s) => put(lit(s)), ...(isPart ? [within] : [])];
  });
  return strings.flatMap((s) => places.flat().map((make) => make(s))).slice(0, MOST_WITNESSES);
}
