/**
 * node search.mjs < request.json > reply.json
 *
 * Finds inputs on which the original and a mutant disagree, and writes tests that assert what the original gives. The
 * mutated files under `root` are instrumented: all mutants in one file, the active one chosen as it runs.
 */

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { Exploration } from './explore.mjs';
import { GivenUp, Laboratory } from './laboratory.mjs';
import { Random } from './random.mjs';
import { importedFiles, readTests } from './seeds.mjs';
import { select } from './select.mjs';
import { nodes, parseSource, study } from './source.mjs';
import { traced } from './trace.mjs';
import { Variations } from './variations.mjs';
import { Writer } from './write.mjs';

const read = (file) => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/** One mutated file: { tests, missed, stats }. */
async function searchFile(request, { file, source }, shared) {
  const started = performance.now();
  const mutants = request.mutants.filter((m) => m.file === file);
  const byId = new Map(mutants.map((m) => [m.id, m]));
  const stats = { file, mutants: mutants.length, programs: 0, deaths: 0, seeds: 0 };
  const unsupported = (detail) => ({
    tests: [],
    missed: mutants.map((m) => ({ key: m.key, reason: 'unsupported', detail })),
    stats,
  });
  if (!/\.[cm]?js$/.test(file)) return unsupported(`${path.extname(file)} files are not loaded`);

  const { parser, modules, sources, tests, style } = shared;
  let knowledge;
  const texts = {};
  const places = [];
  try {
    knowledge = study(parser, { ...sources, [file]: source });
    for (const [name, text] of Object.entries(sources)) {
      const noting = traced(parser, name, text, places.length);
      texts[name] = noting.text;
      places.push(...noting.places);
    }
  } catch (error) {
    return unsupported(`the source does not parse: ${error.message}`);
  }
  const staticIds = mutants.filter((m) => m.static).map((m) => m.id);
  const files = [file, ...modules.filter((f) => f !== file)];
  const lab = new Laboratory({ root: request.root, files, texts, staticIds, keepsState: knowledge.keepsState });
  try {
    const exports = await lab.start();
    const random = new Random(
      request.seed * 7919 + [...file].reduce((sum, c) => Math.imul(sum, 31) + c.charCodeAt(0), 7),
    );
    const variations = new Variations(knowledge, tests, exports, file, random);
    const exploration = new Exploration(lab, variations, mutants, places, started + request.budgetMs);
    await exploration.search(tests).catch((error) => {
      if (!(error instanceof GivenUp) || !exploration.found.length) throw error;
      [stats.gaveUp, stats.deaths, lab.deaths] = [error.message, lab.deaths, 0];
    });
    Object.assign(stats, { programs: exploration.programs, seeds: tests.length, keepsState: knowledge.keepsState });
    const { tests: chosen, unconfirmed } = await select(exploration);
    const found = chosen.map((test) => ({ ...test, variations, keys: test.kills.map((id) => byId.get(id).key) }));
    const killed = new Set(chosen.flatMap((test) => test.kills));
    const missed = mutants
      .filter((m) => !killed.has(m.id))
      .map((m) => ({ key: m.key, ...reason(m, exploration, unconfirmed) }));
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

function reason({ id, static: isStatic }, exploration, unconfirmed) {
  if (unconfirmed.includes(id) || exploration.unstable.has(id))
    return { reason: 'unstable', detail: 'differs only where the original differs between its own runs' };
  if (exploration.avoid.has(id))
    return { reason: 'endless', detail: 'ran without end wherever it was reached' };
  if (exploration.late) return { reason: 'budget', detail: `not told apart in ${exploration.programs} programs` };
  if (!isStatic && !exploration.reached.has(id))
    return { reason: 'unreachable', detail: `not reached by ${exploration.programs} programs` };
  return { reason: 'never-told-apart', detail: `the same in ${exploration.programs} programs` };
}

/** What all mutated files share: the modules that programs may name, and the tests' calls. */
function prepare(request) {
  const parser = createRequire(import.meta.url)(request.parser);
  const originals = new Map(request.files.map(({ file, source }) => [file, source]));
  const textOf = (file) => originals.get(file) ?? read(path.join(request.root, file));
  const testFiles = request.tests
    .map((file) => ({ file, source: read(path.join(request.root, file)) }))
    .filter((t) => t.source !== null);
  const resolve = (file) =>
    [file, `${file}.js`, `${file}/index.js`].find((f) => textOf(f) !== null && /\.[cm]?js$/.test(f));
  const imported = ({ file, source }) => {
    try {
      return importedFiles(parser, file, source).map(resolve).filter(Boolean);
    } catch {
      return []; // a file that does not parse names no modules
    }
  };
  const modules = [...new Set([...originals.keys(), ...testFiles.flatMap(imported)])].filter(
    (f) => !request.tests.includes(f),
  );
  const sources = {};
  for (const queue = [...modules]; queue.length;) {
    const file = queue.pop();
    if (file in sources) continue;
    sources[file] = textOf(file);
    queue.push(...imported({ file, source: sources[file] }));
  }
  const { programs, style } = readTests(parser, testFiles, modules);
  return { parser, modules, sources, tests: programs, style };
}

function titlesIn(parser, file) {
  const text = read(file);
  if (text === null) return [];
  const titles = [];
  for (const [node] of nodes(parseSource(parser, text).program)) {
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
    for (let next = queue.shift(); next; next = queue.shift())
      results[next[0]] = await searchFile(request, next[1], shared);
  };
  await Promise.all(Array.from({ length: Math.max(1, request.workers ?? 1) }, work));
  const taken = new Set(
    [request.write, ...request.tests].flatMap((file) => titlesIn(shared.parser, path.join(request.root, file))),
  );
  const tests = [];
  for (const result of results) {
    const writer = result.tests.length
      ? new Writer(request.write, shared.style, result.tests[0].variations, taken)
      : null;
    for (const { program, outcome, keys } of result.tests) {
      const test = writer.test(program, outcome);
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
