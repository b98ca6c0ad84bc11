/** Inputs that make two compared values equal, one apart, or different: that is where mutants of conditions differ. */

import { lit, record } from './program.mjs';
import { sites } from './values.mjs';

const MOST_OTHERS = 6; // values in place of one that was always equal
const MOST_CODE = 0x10ffff;

/**
 * Ways to programs near `program` in which a pair of compared values would meet: `named` by giving an object a key that is
 * compared and that it lacks, `moved` by changing an input; `parted`: in which a pair that was equal would not be.
 * pairs: [{ a, b, names, same }].
 */
export function meetings(program, pairs, variations) {
  const all = sites(program, variations);
  const leaves = all.filter(({ expr }) => expr.k === 'lit' && ['number', 'string'].includes(typeof expr.v));
  const records = all.filter(({ expr }) => expr.k === 'record');
  const factors = [
    ...new Set(leaves.map(({ expr }) => expr.v).filter((v) => Number.isInteger(v) && v > 1 && v < 1000)),
  ];
  const [named, moved, parted] = [[], [], []];
  for (const { a: left, b: right, names, same } of pairs) {
    if (same) {
      for (const { expr, name, put } of leaves)
        for (const v of othersFor(expr.v, left, [name, ...names], variations)) parted.push(() => put(lit(v)));
      continue;
    }
    for (const [a, b, name] of [
      [left, right, names[0]],
      [right, left, names[1]],
    ]) {
      if (name === null || name === undefined) continue;
      for (const { expr, put } of leaves) {
        for (const v of valuesFor(expr.v, a, b, factors, variations))
          if (!Object.is(v, expr.v)) moved.push(() => put(lit(v)));
      }
      // A key is a text that is given, too.
      for (const { expr, put } of records)
        for (const [i, [key, value]] of expr.entries.entries())
          for (const v of stringsFor(key, a, b))
            if (v !== '__proto__' && expr.entries.every(([own]) => own !== v)) moved.push(() => put(record(expr.entries.with(i, [v, value]))));
      // What is compared may be what an object has under a key of that name, or would have.
      for (const { expr, name: of, put } of records) {
        if (!['number', 'string'].includes(typeof b) || !variations.missingKeys(expr, of).includes(name)) continue;
        for (const v of typeof b === 'number' ? [b, b + 1, b - 1] : [b])
          named.push(() => put(record([...expr.entries, [name, lit(v)]])));
      }
    }
  }
  return { named, moved, parted };
}

/** Values for an input `v` that may move `a` to `b`. */
function valuesFor(v, a, b, factors, { knowledge }) {
  if (b === null || b === undefined) return v === a ? [b] : [];
  if (typeof b !== 'number') return stringsFor(v, a, b);
  return [...numbersFor(v, a, b, factors), ...(knowledge.readsCodes ? charactersFor(v, a, b) : [])];
}

/** What is compared may be the code of a character: of any of those that the text `v` has. */
function charactersFor(v, a, b) {
  if (typeof v !== 'string' || ![a, b].every((n) => Number.isInteger(n) && n >= 0 && n <= MOST_CODE)) return [];
  const places = [...v.matchAll(/[^]/gu)].filter((m) => m[0].codePointAt(0) === a).map((m) => m.index);
  const size = String.fromCodePoint(a).length;
  return places.slice(0, MOST_OTHERS).map((at) => v.slice(0, at) + String.fromCodePoint(b) + v.slice(at + size));
}

/** By being it, by a sum, or by a product. */
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
  if (a === '') return [];
  if (v.includes(a)) return [v.replace(a, () => b)];
  const at = v.toLowerCase().indexOf(a.toLowerCase()); // the code may have looked past the case
  return at < 0 ? [] : [v.slice(0, at) + b + v.slice(at + a.length)];
}

/** Values for an input `v` that is `a`, or holds it, such that it no longer is; names: those that it may go by. */
function othersFor(v, a, names, variations) {
  if (typeof v === 'number') return v === a ? [v + 1, v - 1, 0, -v] : [];
  if (typeof a !== 'string' || a === '' || !v.includes(a)) return [];
  const seen = names.flatMap((name) => [...(variations.pools.get(name)?.values() ?? [])].map((e) => e.v));
  const known = seen.filter((other) => typeof other === 'string' && other !== a);
  const pick = () => variations.random.pick(known.length && variations.random.next() < 0.7 ? known : variations.texts);
  const others = [...variations.siblings(a), ...Array.from({ length: MOST_OTHERS }, pick)];
  return [...new Set([...others, ''])].map((other) => (v === a ? other : v.replace(a, () => other)));
}
