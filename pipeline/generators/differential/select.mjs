/** From all that was found to the fewest and smallest programs that keep every kill. */

import { callsOf, isData, isPresentable, list, lit, record, walkProgram } from './program.mjs';
import { sites } from './values.mjs';
import { inTurn } from './witness.mjs';

const MOST_SHRINKS = 40;
const COMPANY = 40; // programs that may have run in the same modules before a test

/** Greedy set cover, then reverse delete. rows: [{ kills, cost }]; returns those chosen, in order. */
export function cover(rows) {
  const left = new Set(rows.flatMap((row) => row.kills));
  const chosen = [];
  while (left.size) {
    let best = null;
    let most = 0;
    for (const row of rows) {
      const gain = row.kills.filter((id) => left.has(id)).length;
      if (gain > most || (gain && gain === most && row.cost < best.cost)) [best, most] = [row, gain];
    }
    chosen.push(best);
    for (const id of best.kills) left.delete(id);
  }
  return withoutNeedless(chosen);
}

function withoutNeedless(rows) {
  let kept = rows;
  for (const row of [...rows].sort((a, b) => b.cost - a.cost)) {
    const rest = kept.filter((other) => other !== row);
    const others = new Set(rest.flatMap((other) => other.kills));
    if (row.kills.every((id) => others.has(id))) kept = rest;
  }
  return kept;
}

/** How odd a test is: 0 as a person would write it, 1 odd values, 2 the last resort. */
function rankOf(program, outcome, variations) {
  if (!isPresentable(outcome) || variations.isAbsurd(program)) return 2;
  return variations.isSane(program) ? 0 : 1;
}

/** Rows { program, outcome, kills, cost, rank } with all kills of each program, as the worker finds them. */
async function matrix(exploration, programs, ids) {
  const { lab, variations } = exploration;
  const rows = [];
  const onResult = (program, { outcome, kills, unstable }) => {
    if (unstable || !kills.length) return;
    rows.push({ program, outcome, kills, cost: variations.cost(program), rank: rankOf(program, outcome, variations) });
  };
  await lab.explore(programs, { alive: ids, avoid: () => [], onResult });
  return rows;
}

/** The programs to write as tests: [{ program, outcome, kills, isBare }], every one confirmed in fresh modules. */
export async function select(exploration) {
  const { lab } = exploration;
  // All of them: one that rested may have been killed by what was found for another.
  const ids = [...exploration.mutants.keys()].filter((id) => !exploration.avoid.has(id));
  let rows = await matrix(
    exploration,
    exploration.found.map((f) => f.program),
    ids,
  );
  const before = inTurn([...exploration.entries].sort((a, b) => a.cost - b.cost), (e) => callsOf(e.program))
    .slice(0, COMPANY)
    .map((e) => e.program);
  const claimed = [...new Set(rows.flatMap((row) => row.kills))];
  const chosen = [];
  const done = new Set();
  // What a confirmation takes back is offered to the programs that are left.
  for (let round = 0; round < 4; round++) {
    const open = (row) => ({ ...row, kills: row.kills.filter((id) => !done.has(id)) });
    const candidates = rows.map(open).filter((row) => row.kills.length);
    if (!candidates.length) break;
    for (const row of inTiers(candidates)) {
      const small = await shrink(exploration, row);
      const confirm = async (p) =>
        (await lab.order({ order: 'confirm', program: p, ids: claimed, before })) ?? { outcome: null, kills: [], why: 'ends' };
      let result = await confirm(small.program);
      if (!row.kills.every((id) => result.kills.includes(id)) && small.program !== row.program) {
        const whole = await confirm(row.program);
        if (whole.kills.length > result.kills.length) [result, small.program] = [whole, row.program];
      }
      rows = rows.filter((other) => other.program !== row.program);
      exploration.refuse(row.kills.filter((id) => !result.kills.includes(id)), result.why ?? 'used');
      if (!result.outcome || !result.kills.length) continue;
      for (const id of result.kills) done.add(id);
      chosen.push({
        program: small.program,
        outcome: result.outcome,
        isBare: result.isBare,
        kills: result.kills,
        cost: exploration.variations.cost(small.program),
      });
    }
  }
  return cover(chosen);
}

/** What a person would write covers all it can; only the rest is left to odd programs. */
function inTiers(rows) {
  const covered = new Set();
  const chosen = [];
  for (const rank of [0, 1, 2]) {
    const open = (row) => ({ ...row, kills: row.kills.filter((id) => !covered.has(id)) });
    const best = cover(
      rows
        .filter((row) => row.rank === rank)
        .map(open)
        .filter((row) => row.kills.length),
    );
    for (const id of best.flatMap((row) => row.kills)) covered.add(id);
    chosen.push(...best);
  }
  // Each answers for what no one before it kills: that is what shrinking must keep.
  const taken = new Set();
  return chosen
    .map((row) => {
      const own = row.kills.filter((id) => !taken.has(id));
      for (const id of own) taken.add(id);
      return { ...row, kills: own };
    })
    .filter((row) => row.kills.length);
}

async function shrink({ lab, variations }, { program, kills, rank }) {
  let smallest = program;
  const isAbsurd = variations.isAbsurd(program);
  for (let n = 0; n < MOST_SHRINKS; n++) {
    const limit = variations.cost(smallest);
    smallest = withoutIdleNames(smallest);
    const candidates = simpler(smallest, variations, isAbsurd)
      .map((p) => ({ p, cost: variations.cost(p) }))
      .filter(({ p, cost }) => cost < limit - 0.01 && (isAbsurd || !variations.isAbsurd(p)))
      .sort((a, b) => a.cost - b.cost)
      .slice(0, 150)
      .map(({ p }) => p);
    if (!candidates.length) break;
    const { index } = (await lab.order({ order: 'choose', candidates, must: kills, isLastResort: rank === 2 }, 2)) ?? {
      index: -1,
    };
    if (index < 0) break;
    if (!variations.isSane(candidates[index]) && variations.isSane(smallest)) break;
    smallest = candidates[index];
  }
  return { program: smallest };
}

/** The same program where a step whose value nothing uses gives it no name. */
function withoutIdleNames(program) {
  const isUsed = (name, from) => {
    const rest = { steps: program.steps.slice(from), observe: program.observe };
    return [...walkProgram(rest)].some((e) => e.k === 'var' && e.name === name);
  };
  const steps = program.steps.map((step, i) =>
    step.bind && !isUsed(step.bind, i + 1) ? { ...step, bind: null } : step,
  );
  return { ...program, steps };
}

function simpler(program, variations, keepsArguments) {
  const { steps } = program;
  const found = steps.flatMap((step, i) => (step.bind ? [] : [{ ...program, steps: steps.toSpliced(i, 1) }]));
  // What a step does may be what tells them apart: then that is what to look at.
  for (const [i, { expr, wait }] of steps.entries()) {
    if (expr.k !== 'new') found.push({ steps: steps.slice(0, i), observe: expr, wait });
  }
  for (const { expr, name, put } of sites(program, variations)) {
    if ((expr.k === 'call' || expr.k === 'new') && expr.args.length && !keepsArguments)
      found.push(put({ ...expr, args: expr.args.slice(0, -1) }));
    // One call less in a chain.
    if (expr.k === 'call' && expr.fn.k === 'get' && /^(call|new)$/.test(expr.fn.of.k)) found.push(put(expr.fn.of));
    if (expr.k === 'new' && expr.cls.name === 'Array') found.push(put(list([])));
    if (!isData(expr)) continue;
    for (const e of variations.likely.get(name)?.values() ?? []) found.push(put(e));
    found.push(...smallerData(expr).map(put));
  }
  return found;
}

function smallerData(expr) {
  if (expr.k === 'list') return [list([]), ...expr.items.map((_, i) => list(expr.items.toSpliced(i, 1)))];
  if (expr.k === 'record') return [record([]), ...expr.entries.map((_, i) => record(expr.entries.toSpliced(i, 1)))];
  if (typeof expr.v === 'number')
    return [0, 1, 2, 3, 5, 10, 50, 100, 1000, Math.trunc(expr.v), Math.trunc(expr.v / 10), Math.abs(expr.v)].map(lit);
  if (typeof expr.v !== 'string') return [];
  const s = expr.v;
  const cuts = [];
  for (let size = Math.ceil(s.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < s.length; at += size) cuts.push(s.slice(0, at) + s.slice(at + size));
  }
  const plainer = [...s].flatMap((c, i) =>
    /[a-z0-9 ]/.test(c) ? [] : [s.slice(0, i) + (/[A-Z]/.test(c) ? c.toLowerCase() : 'a') + s.slice(i + 1)],
  );
  const days = /^\d{4}-\d\d-\d\dT/.test(s) ? [s.slice(0, 10)] : [];
  return ['', 'a', ...days, ...cuts.slice(0, 60), ...plainer.slice(0, 20)].map(lit);
}
