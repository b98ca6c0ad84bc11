/**
 * Runs programs on the original and on its mutants, in a process of its own. It decides nothing: it is told what to
 * run (a message), notes on descriptor 3 what it is about to run ("<program> -" on the original, "<program> +" on mutants,
 * where one mutant has to be known "<program> <mutant>"), and says what came of it (a message).
 */

import fs from 'node:fs';

import { asserts, changedArgument, fails, judge } from './judge.mjs';
import { Loader } from './loader.mjs';
import { asksClock, callsOf, exportsOf, isPresentable } from './program.mjs';
import { Recorder } from './recorder.mjs';
import { shapesOf } from './shapes.mjs';
import { LATE } from './run.mjs';
import { MOST_HITS, arm, disarm, meter, perform } from './runs.mjs';
import { Noted, wayOf } from './noted.mjs';
import { Cases, GLOBALS, anything } from './stands.mjs';
import { RARER, WORLDS, forget, hasLooked, install } from './world.mjs';

const PLANTED = 'Stryker was here'; // no input that anybody would write
const MORE_HITS = 5; // times as many as the original, and those below: what a mutant may take
const TOGETHER_MS = 15; // of results in one message: a message costs as much as many a run
const MOST_COMPANY = 24;
const LEAST_HITS = 8000; // one without a cache works where the original looks up

const clock = performance.now.bind(performance); // before it is held still
// --- the orders -----------------------------------------------------------------------------------------------------

let loader;
let tracing; // a loader of the sources that note what they compare, and its instance
let tracedShared;
let mutable; // a loader of the instrumented sources that note what they compare, and its instance
let mutableShared;
const noted = new Noted();
let shared; // the instance that all runs use where modules keep no state
let stateful = false;
const company = new Map(); // what a program calls → the first such program: what other tests may have done before
let statics = new Set(); // ids of mutants that act while a module loads
const staticInstances = new Map();

function note(text) {
  fs.writeSync(3, `${text}\n`);
}

/** files: those that are needed; without them, all. */
async function load(mutant, world = WORLDS[0], files = undefined) {
  arm(mutant, world, MOST_HITS);
  try {
    return await loader.instance(files);
  } finally {
    disarm();
  }
}

/** The modules for one run of a program with `mutant`; null where they don't load with it. */
async function namespacesFor(program, mutant, fresh, world) {
  try {
    if (fresh || stateful) return await load(statics.has(mutant) ? mutant : undefined, world, filesOf(program));
    if (!statics.has(mutant)) return (shared ??= await load());
    if (!staticInstances.has(mutant)) staticInstances.set(mutant, await load(mutant).catch(() => null));
    return staticInstances.get(mutant);
  } catch (error) {
    if (mutant === undefined) throw error;
    return null;
  }
}

/** The files that a test of this program would import. */
const filesOf = (program) => [...new Set(exportsOf(program).map(({ file }) => file))];

async function runOn(program, mutant, { world = WORLDS[0], fresh = false, than, most = MOST_HITS } = {}) {
  const namespaces = await namespacesFor(program, mutant, fresh, world);
  if (!namespaces) return { unusable: 'the module does not load' };
  return perform(
    program,
    namespaces,
    mutant,
    world,
    than ? Math.min(than.hits * MORE_HITS + LEAST_HITS, 2 * MOST_HITS) : most,
  );
}

/**
 * Why no test may assert `outcome`, which the original gives: 'moves' with clock, chance or zone; is 'rough', of the engine;
 * of 'elsewhere', of the machine; 'leans' on what was called before; 'ends' there in another way. '' where it may.
 */
async function unsteady(program, outcome, fresh, before) {
  if (asksClock(program)) return 'moves'; // it stands still here: two looks at it give one time
  forget();
  for (const worlds of [WORLDS, RARER]) {
    for (const world of worlds) {
      const why = whyNot(outcome, await runOn(program, undefined, { world, fresh }));
      if (why) return (await aspectOf(world, program, outcome, fresh)) ?? why;
    }
    if (!hasLooked) break;
  }
  return fresh || stateful ? leaning(program, outcome, before) : '';
}

/** A promise that is late is no reason: a busy machine makes it so. */
const whyNot = (outcome, run) => (run.unusable && run.unusable !== LATE ? 'ends' : fails(outcome, run) ? 'moves' : '');

/** What of a world it is, where one thing alone is enough. */
async function aspectOf(world, program, outcome, fresh) {
  for (const [aspect, is] of [['rough', 'isRough'], ['elsewhere', 'isElsewhere']]) {
    const alone = { ...WORLDS[0], [is]: true };
    if (world[is] && whyNot(outcome, await runOn(program, undefined, { world: alone, fresh }))) return aspect;
  }
  return null;
}

/** The tests of a project share its modules, in an order that nobody promises: what holds for the first call only is no pin. */
async function leaning(program, outcome, before) {
  const used = await load();
  for (const other of [...before, program]) await perform(other, used, undefined, WORLDS[0], MOST_HITS);
  return whyNot(outcome, await perform(program, used, undefined, WORLDS[0], MOST_HITS)) && 'leans';
}

async function start({ root, files, code, tracedCode, mutableCode, targets, staticIds, keepsState }) {
  loader = new Loader(root, files, code, targets);
  tracing = new Loader(root, files, tracedCode, targets);
  mutable = new Loader(root, files, mutableCode, targets);
  statics = new Set(staticIds);
  stateful = keepsState;
  try {
    await load(); // what packages look at as they load, they do once
    forget();
    const namespaces = (shared = await load());
    stateful ||= hasLooked; // what was kept of it is another in another world
    const formats = Object.fromEntries(Object.entries(code).map(([file, { format }]) => [file, format]));
    return { exports: shapesOf(namespaces, formats) };
  } catch (error) {
    return { failed: `${error?.name}: ${error?.message}` };
  }
}

/** Each program on the original for `most` visits, then on each mutant of `alive` that it reaches; messages say what came of them. */
async function explore({ programs, alive, avoid, spared, careful, most }) {
  let parts = [];
  let told = clock();
  const wanted = new Set(alive);
  const skip = new Set(avoid);
  for (const [index, program] of programs.entries()) {
    note(`${index} -`);
    const original = await runOn(program, undefined, { most });
    const outcome = judge(program, original);
    const reached = Object.keys(meter.hits).filter((id) => wanted.has(id));
    const result = {
      outcome,
      reached,
      way: wayOf(meter.hits),
      kills: [],
      endless: [],
      watch: null,
      unstable: '',
      news: [],
      gaps: [],
      hits: meter.count,
      work: 0,
    };
    meter.work = 0; // the next run adds this one's
    if (asserts(outcome)) {
      note(`${index} +`);
      for (const id of new Set([...reached, ...alive.filter((id) => statics.has(id))])) {
        if (skip.has(id) || (index === 0 && spared.includes(id))) continue;
        if (careful) note(`${index} ${id}`);
        const mutated = await runOn(program, id, { than: original });
        if (mutated.endless) result.endless.push(id);
        if (fails(outcome, mutated)) result.kills.push(id);
        else result.watch ??= changedArgument(program, original, mutated);
      }
      const calls = callsOf(program);
      if (company.size < MOST_COMPANY && !company.has(calls)) company.set(calls, program);
      if (result.kills.length) result.unstable = await unsteady(program, outcome, false, [...company.values()]);
      result.work = meter.work + meter.count;
      await runTraced(program);
      [result.news, result.gaps] = [noted.news(), noted.gaps()];
    }
    parts.push(result);
    if (clock() - told < TOGETHER_MS && index < programs.length - 1) continue;
    tell({ parts });
    [parts, told] = [[], clock()];
  }
  return {};
}

/** The first of `candidates` that is stable and fails for all of `must`; index -1 where none is. */
async function choose({ candidates, must, isLastResort, avoid }) {
  for (const [index, program] of candidates.entries()) {
    if (avoid.includes(`${index} +`)) continue;
    note(`${index} +`);
    const original = await runOn(program);
    const outcome = judge(program, original);
    if (!isPresentable(outcome, isLastResort)) continue;
    let all = true;
    for (const id of must) all &&= fails(outcome, await runOn(program, id, { than: original }));
    if (all && !(await unsteady(program, outcome, false, [...company.values()]))) return { index, outcome };
  }
  return { index: -1 };
}

/**
 * In fresh modules: what the original gives in every world, and after the programs `before`; which of `ids` fail in each
 * world; isBare: one throws what does not say from where; why: as `unsteady` says it, where there is no outcome.
 */
async function confirm({ program, ids, before, avoid }) {
  if (avoid.includes('0 -')) return { outcome: null, kills: [], why: 'ends' };
  note('0 -');
  const original = await runOn(program, undefined, { fresh: true });
  const outcome = judge(program, original);
  const why = asserts(outcome) ? await unsteady(program, outcome, true, before) : 'ends';
  if (why) return { outcome: null, kills: [], why };
  const kills = [];
  let isBare = false;
  for (const id of ids) {
    if (avoid.includes(`0 ${id}`)) continue;
    note(`0 ${id}`);
    const runs = [];
    for (const world of WORLDS) runs.push(await runOn(program, id, { world, fresh: true, than: original }));
    if (!runs.every((run) => fails(outcome, run))) continue;
    kills.push(id);
    isBare ||= outcome.kind === 'value' && runs.some((run) => 'error' in run && !/^ +at /m.test(run.error?.stack));
  }
  return { outcome, kills, isBare };
}

/** The pairs of values that a run of the original compares and finds different: [{ place, a, b }]. */
async function trace({ program, avoid }) {
  if (avoid.includes('0 -')) return { pairs: [] };
  note('0 -');
  await runTraced(program);
  return { pairs: noted.pairs() };
}

async function runTraced(program) {
  arm(undefined, WORLDS[0], MOST_HITS);
  if (stateful || !tracedShared) tracedShared = await tracing.instance(stateful ? filesOf(program) : undefined);
  noted.clear();
  await perform(program, tracedShared, undefined, WORLDS[0], MOST_HITS);
}

/**
 * What a mutant makes different on its way, whether or not it shows: of each program the pairs of values that are compared
 * with the mutant `id` on and not without it.
 */
async function infected({ programs, id, avoid }) {
  const found = [];
  for (const [index, program] of programs.entries()) {
    note(`${index} -`);
    const isLethal = avoid.includes(`${index} -`);
    const known = isLethal ? new Map() : await pairsUnder(program, undefined);
    const pairs = isLethal ? new Map() : await pairsUnder(program, id);
    const isNew = ([text]) => !known.has(text) && !text.includes(PLANTED);
    found.push([...pairs].filter(isNew).map(([, pair]) => pair));
  }
  return { found };
}

async function pairsUnder(program, mutant) {
  const isStatic = statics.has(mutant);
  arm(isStatic ? mutant : undefined, WORLDS[0], MOST_HITS);
  noted.clear();
  try {
    const own = stateful || isStatic ? await mutable.instance(filesOf(program)) : (mutableShared ??= await mutable.instance());
    if (!isStatic) noted.clear();
    await perform(program, own, mutant, WORLDS[0], MOST_HITS);
  } catch {
    // with the mutant on, the module does not load
  }
  disarm();
  return noted.all();
}

/**
 * The calls that the existing tests make, as they run. tests: their files; code, targets: as of `start`, theirs included;
 * theirs: what belongs to the tests; deep: file → those it needs whose calls by it are noted too; packages: specifier → the names that they import from it.
 */
async function recorded({ root, tests, code, targets, theirs, deep, packages, avoid }) {
  const [recorder, inner] = [new Recorder(), new Recorder()];
  const cases = new Cases(() => recorder.begin());
  const isTheirs = new Set(theirs);
  const formats = new Map(Object.entries(code).map(([file, { format }]) => [file, format]));
  const instead = (specifier, from, whole) => {
    const target = targets[from]?.[specifier];
    const isWhole = formats.get(target) === 'commonjs';
    if (!isTheirs.has(from)) return deep[from]?.includes(target) ? inner.within(target, whole, isWhole) : undefined;
    if (target) return isTheirs.has(target) ? undefined : recorder.namespace(target, whole, isWhole);
    return packages[specifier] ? cases.package(specifier, packages[specifier]) : undefined;
  };
  for (const name of GLOBALS) globalThis[name] = cases.named(name) ?? anything();
  const testing = new Loader(root, [], code, targets, instead);
  for (const file of tests) {
    if (avoid.includes(`${file} -`)) continue;
    note(`${file} -`);
    arm(undefined, WORLDS[0], Infinity);
    try {
      await testing.load(file);
    } catch {
      // what it did before it failed is known
    }
    await cases.runAll();
  }
  for (const name of GLOBALS) delete globalThis[name];
  disarm();
  return { programs: [...recorder.programs, ...inner.programs] };
}

const orders = { recorded, start, explore, choose, confirm, trace, infected };

const tell = process.send.bind(process);
install();
process.on('message', async ({ order, ...rest }) => {
  try {
    tell({ reply: await orders[order](rest) });
  } catch (error) {
    tell({ reply: { failed: String(error?.stack ?? error) } });
  }
});
