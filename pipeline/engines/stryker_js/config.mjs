// The Stryker configuration of one of our runs: the project's own, and over it what the program must own.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { root, userConfig, overrides } = JSON.parse(fs.readFileSync(process.env.DOIT_MUTATE_SCOPES, 'utf8'));
const RUNNERS = ['mochaOptions', 'vitest', 'jest', 'tap'].filter((key) => key in overrides);
const user = userConfig ? await read(path.join(root, userConfig)) : {};
// Of Stryker's own plugins mocha's is all that is there to load, and our plugin loads it where it runs. The others' schemas
// hold the defaults of their options.
const own = overrides.mochaOptions && !user.checkers?.length && !user.ignorers?.length ? [] : ['@stryker-mutator/*'];
export default {
  // Files that this is about are written anew, which takes a program's right to be run: only where types are checked.
  disableTypeChecks: '**/*.{ts,tsx,mts,cts,vue,svelte}',
  ...user,
  ...overrides,
  ...Object.fromEntries(RUNNERS.map((key) => [key, { ...user[key], ...overrides[key] }])),
  ...(overrides.jest ? { jest: { ...user.jest, ...overrides.jest, config: { ...user.jest?.config, ...overrides.jest.config } } } : {}),
  testRunnerNodeArgs: [...new Set([...(user.testRunnerNodeArgs ?? []), ...(overrides.testRunnerNodeArgs ?? [])])],
  plugins: [...(user.plugins ?? own), ...overrides.plugins],
  ignorePatterns: [...(user.ignorePatterns ?? []), ...overrides.ignorePatterns],
};

async function read(file) {
  try {
    if (file.endsWith('.json')) return JSON.parse(fs.readFileSync(file, 'utf8'));
    return (await import(pathToFileURL(file).href)).default;
  } catch (error) {
    throw new Error(`${userConfig}: ${error.message}`); // the one Stryker names is ours
  }
}
