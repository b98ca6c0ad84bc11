// A StrykerJS test-runner plugin: the project's own runner's, where each mutant meets only its own scope's tests.
//
// Several scopes share one Stryker process that way, and each gets the result of a run of it alone: Stryker plans with
// the coverage of all tests, and the tests of other scopes are taken out of every mutant's run.
// Plugin API: https://stryker-mutator.io/docs/stryker-js/guides/create-a-plugin
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { alone } from './alone.mjs';
import { entryOf } from './session.mjs';

const { root, runner, scopes, titlesFile } = JSON.parse(fs.readFileSync(process.env.DOIT_MUTATE_SCOPES, 'utf8'));
const require = createRequire(path.join(root, 'package.json'));
const allTests = [...new Set(scopes.flatMap(({ tests }) => tests))];

const scopeOfMutated = new Map(scopes.flatMap((scope) => scope.mutate.map((file) => [file, scope])));

class ScopedRunner {
  #injector;
  #inner;
  #titles; // file -> titles of its tests, from the dry run of whichever process made it
  #alone; // mutants that act while modules are loaded get a process each, of ours

  constructor(injector, { mochaOptions = {} }) {
    this.#injector = injector;
    // What mocha is told in Stryker's configuration, Stryker alone knows how to read.
    this.#alone = runner === 'mocha' && Object.keys(mochaOptions).every((key) => key === 'spec');
  }
  async capabilities() {
    return this.#alone ? { reloadEnvironment: true } : this.#inner.capabilities();
  }
  // Only workers come here: the process that starts them loads this module too, and has no use for the project's runner.
  async init() {
    for (const file of scopeOfMutated.keys()) keepMode(file);
    const { strykerPlugins: theirs } = await import(entryOf(require, `@stryker-mutator/${runner}-runner`));
    const { factory } = theirs.find(({ kind, name }) => kind === 'TestRunner' && name === runner);
    this.#inner = this.#injector.injectFunction(factory);
    return this.#inner.init?.();
  }
  dispose() {
    return this.#inner?.dispose?.();
  }

  async dryRun(options) {
    // vitest has no option for which files are run, and mocha takes no other than its own.
    const result = await this.#inner.dryRun(runner === 'vitest' ? { ...options, testFiles: allTests } : options);
    if (result.status !== 'complete') return result;
    const titles = {};
    const fileOf = new Map();
    for (const { id, fileName, status } of result.tests) {
      if (!fileName || status !== 0) continue;
      const file = path.relative(process.cwd(), fileName).split(path.sep).join('/');
      if (fileOf.has(id) && fileOf.get(id) !== file && scopes.length > 1) {
        // The runner knows a test by its title alone: nobody could tell whose kill it is.
        return { status: 'error', errorMessage: `DOIT-MUTATE-SHARED-TITLE ${id} in ${fileOf.get(id)} and ${file}` };
      }
      fileOf.set(id, file);
      (titles[file] ??= []).push(id);
    }
    fs.writeFileSync(titlesFile, JSON.stringify(titles));
    return result;
  }

  async mutantRun(options) {
    this.#titles ??= JSON.parse(fs.readFileSync(titlesFile, 'utf8'));
    const file = path.relative(root, options.activeMutant.fileName).split(path.sep).join('/');
    const { tests } = scopeOfMutated.get(file);
    const mine = new Set(tests.flatMap((test) => this.#titles[test] ?? []));
    const testFilter = options.testFilter ? options.testFilter.filter((id) => mine.has(id)) : [...mine];
    // An empty filter is taken for "all tests".
    if (testFilter.length === 0) return { status: 'survived', nrOfTests: 0 };
    if (this.#alone && options.mutantActivation === 'static') {
      return alone(runner, path.dirname(titlesFile), options, { files: tests, titles: testFilter });
    }
    return this.#inner.mutantRun({ ...options, testFilter });
  }
}

// What Stryker has put mutants in it writes anew, without the right to be run: a test may start it as a program.
function keepMode(file) {
  const { mode } = fs.statSync(path.join(root, file));
  if (mode & 0o111) fs.chmodSync(path.resolve(file), mode);
}

function create(injector, options) {
  return new ScopedRunner(injector, options);
}
create.inject = ['$injector', 'options'];

export const strykerPlugins = [{ kind: 'TestRunner', name: 'doit-mutate', factory: create }];
