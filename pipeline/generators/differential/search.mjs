/**
 * node search.mjs < request.json > reply.json
 *
 * Finds inputs on which the original and a mutant disagree, and writes tests that assert what the original gives. The
 * mutated files under `root` are instrumented: all mutants in one file, the active one chosen as it runs.
 */

import fs from 'node:fs';
import path from 'node:path';

import { Exploration } from './explore.mjs';
import { reasonFor } from './closest.mjs';
import { closedOnly } from './expressions.mjs';
import { GivenUp, Laboratory } from './laboratory.mjs';
import { IS_CODE, IS_TYPED, Modules, Untyped, packageNames, specifiers } from './modules.mjs';
import { withPowers } from './power.mjs';
import { fingerprint } from './program.mjs';
import { Random } from './random.mjs';
import { readTests } from './seeds.mjs';
import { select } from './select.mjs';
import { nodes, study } from './source.mjs';
import { keepsState as keeps } from './state.mjs';
import { traced, UNTOLD } from './trace.mjs';
import { Variations } from './variations.mjs';
import { Writer } from './write.mjs';

// What a file may cost, in milliseconds of CPU.
const BASE_MS = 2500;
const EACH_MS = 430; // a survivor
const SHARES = 4; // of the time on the clock, for one file

/** One mutated file: { tests, missed, stats }. */
async function searchFile(request, { file, source }, shared, until) {
  const started = performance.now();
  const mutants = request.mutants.filter((m) => m.file === file);
  const byId = new Map(mutants.map((m) => [m.id, m]));
  const stats = { file, mutants: mutants.length, programs: 0, deaths: 0, seeds: 0 };
  const unsupported = (detail) => ({
    tests: [],
    missed: mutants.map((m) => ({ key: m.key, reason: 'unsupported', detail })),
    stats,
  });
  if (!IS_CODE.test(file)) return unsupported(`${path.extname(file)} files are not loaded`);

  const { project, modules, sources, declared, targets } = shared;
  let knowledge;
  let codes;
  try {
    knowledge = study(project, { ...sources, [file]: source }, declared);
    codes = shared.codes ??= codesOf(shared);
  } catch (error) {
    return unsupported(error instanceof Untyped ? error.message : `the source does not parse: ${error.message}`);
  }
  const staticIds = mutants.filter((m) => m.static).map((m) => m.id);
  const files = [file, ...modules.filter((f) => f !== file)];
  const keepsState = project.closure([file]).some((f) => keeps(project.parse(sources[f] ?? project.text(f)).program));
  const { places, ...loaded } = codes;
  const lab = new Laboratory({ root: request.root, files, ...loaded, targets, staticIds, keepsState });
  try {
    const exports = await lab.start();
    const tests = await (shared.seeds ??= seeds(lab, shared, { ...codes.tracedCode })); // once for all files
    const random = new Random(
      request.seed * 7919 + [...file].reduce((sum, c) => Math.imul(sum, 31) + c.charCodeAt(0), 7),
    );
    const budget = Math.min(request.budgetMs, BASE_MS + EACH_MS * mutants.length);
    knowledge.keepsState = keepsState;
    knowledge.isTyped = IS_TYPED.test(request.write);
    const variations = new Variations(knowledge, tests, exports, file, random);
    const exploration = new Exploration(lab, variations, mutants, places, lab.cpu + budget, until);
    await exploration.search(tests).catch((error) => {
      if (!(error instanceof GivenUp) || !exploration.found.length) throw error;
      [stats.gaveUp, stats.deaths, lab.deaths] = [error.message, lab.deaths, 0];
    });
    Object.assign(stats, { programs: exploration.programs, seeds: tests.length, keepsState });
    const chosen = await select(exploration);
    const found = chosen.map((test) => ({ ...test, variations, keys: test.kills.map((id) => byId.get(id).key) }));
    const killed = new Set(chosen.flatMap((test) => test.kills));
    const missed = [];
    for (const m of mutants.filter((m) => !killed.has(m.id)))
      missed.push({ key: m.key, ...(await reasonFor(m, exploration)) });
    return { tests: found, missed, stats };
  } catch (error) {
    if (!(error instanceof GivenUp)) throw error;
    return unsupported(error.message);
  } finally {
    stats.deaths += lab.deaths;
    stats.ms = Math.round(performance.now() - started);
    lab.stop();
  }
}

/**
 * Every module as the worker loads it: code: as it lies there, the mutated ones instrumented; tracedCode: the originals that
 * note what they compare, at `places`; mutableCode: the instrumented ones that do. Throws Untyped, or what the parser throws.
 */
function codesOf({ project, sources }) {
  const [code, tracedCode, mutableCode] = [{}, {}, {}];
  const places = [];
  for (const [name, text] of Object.entries(sources)) {
    const onDisk = project.onDisk(name);
    const noting = traced(project, name, text, places.length);
    places.push(...noting.places);
    code[name] = project.loadable(name, withPowers(project, onDisk));
    tracedCode[name] = project.loadable(name, noting.text);
    const isMutated = project.originals.has(name);
    mutableCode[name] = isMutated ? project.loadable(name, traced(project, name, onDisk, UNTOLD).text) : tracedCode[name];
  }
  return { code, tracedCode, mutableCode, places };
}

/** What the tests do: as they read, then as they run; equal programs once. */
async function seeds(lab, { project, read, testFiles, theirs, deep, packages, targets }, code) {
  const known = new Map(read.map((program) => [fingerprint(program), program]));
  try {
    for (const file of theirs) code[file] = project.loadable(file, project.onDisk(file));
    const { root } = project;
    const tests = testFiles.map((t) => t.file);
    const reply = await lab.order({ order: 'recorded', root, tests, code, targets, theirs, deep, packages }, 3);
    for (const program of reply?.programs ?? []) {
      const closed = closedOnly(project, program);
      if (!known.has(fingerprint(closed))) known.set(fingerprint(closed), closed);
    }
  } catch (error) {
    if (!(error instanceof GivenUp) && !(error instanceof Untyped)) throw error;
  }
  lab.stop(); // what tests leave behind is in no search
  return [...known.values()];
}

/** What all mutated files share: the modules that programs may name, and the tests' calls. */
function prepare(request) {
  const originals = new Map(request.files.map(({ file, source }) => [file, source]));
  const project = new Modules(request.root, request.parser, originals);
  const testFiles = request.tests
    .map((file) => ({ file, source: project.onDisk(file) }))
    .filter((t) => t.source !== null);
  const modules = [...new Set([...originals.keys(), ...testFiles.flatMap((t) => project.imported(t.file))])].filter(
    (f) => !request.tests.includes(f),
  );
  const sources = {};
  const targets = {};
  for (const file of project.closure(modules)) {
    sources[file] = project.text(file);
    // Of one that does not parse, each file that needs it says so.
    const asked = project.reads(file) ? specifiers(project.parse(sources[file])) : [];
    targets[file] = Object.fromEntries(asked.map((specifier) => [specifier, project.resolve(specifier, file)]));
  }
  const declared = Object.keys(sources)
    .map((file) => project.onDisk(file.replace(/\.([cm]?)js$/, '.d.$1ts')))
    .filter((text) => text !== null);
  const { programs, style } = readTests(project, testFiles, modules, request.write);
  const ours = new Set(project.closure([...originals.keys()]));
  const theirs = project.closure(testFiles.map((t) => t.file)).filter((file) => !ours.has(file) && project.reads(file));
  const packages = {};
  for (const file of theirs) {
    const tree = project.parse(project.onDisk(file));
    targets[file] = Object.fromEntries(specifiers(tree).map((name) => [name, project.resolve(name, file)]));
    for (const [specifier, names] of packageNames(tree)) packages[specifier] = [...(packages[specifier] ?? []), ...names];
  }
  const deep = {};
  for (const file of ours) deep[file] = Object.values(targets[file] ?? {}).filter((f) => originals.has(f));
  return { deep, project, modules, sources, targets, declared, read: programs, style, testFiles, theirs, packages };
}

function titlesIn(project, file) {
  const text = project.onDisk(file);
  if (text === null) return [];
  if (!project.reads(file)) return [...text.matchAll(/\(\s*(['"`])(.*?)\1/g)].map(([, , title]) => title);
  const titles = [];
  for (const [node] of nodes(project.parse(text).program)) {
    if (node.type === 'CallExpression' && node.arguments[0]?.type === 'StringLiteral')
      titles.push(node.arguments[0].value);
  }
  return titles;
}

export async function search(request) {
  const shared = prepare(request);
  const queue = [...request.files.entries()];
  const results = [];
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      // Where the machine is busy with other things, the clock may end a search; one file may take what others leave.
      const now = performance.now();
      const until = now + (request.clockMs - now) * Math.min(1, SHARES / (queue.length + 1));
      results[next[0]] = await searchFile(request, next[1], shared, until);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, request.workers ?? 1) }, work));
  const taken = new Set(
    [request.write, ...request.tests].flatMap((file) => titlesIn(shared.project, file)),
  );
  const tests = [];
  for (const result of results) {
    const writer = result.tests.length
      ? new Writer(request.write, shared.style, result.tests[0].variations, taken)
      : null;
    for (const { program, outcome, keys, isBare } of result.tests) {
      const test = writer.test(program, outcome, isBare);
      taken.add(test.title);
      tests.push({ ...test, kills: keys.sort() });
    }
  }
  return { tests, missed: results.flatMap((r) => r.missed), stats: { files: results.map((r) => r.stats) } };
}

try {
  process.stdout.write(JSON.stringify(await search(JSON.parse(fs.readFileSync(0, 'utf8')))));
} catch (error) {
  process.stderr.write(`${error.stack}\n${error.message.split('\n')[0]}\n`); // the last line is what is shown
  process.exitCode = 1;
}
