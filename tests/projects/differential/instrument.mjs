// node instrument.mjs file ...: the files are replaced by StrykerJS's instrumented ones; prints the mutants.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(fs.realpathSync('node_modules/@stryker-mutator/core/package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { createInstrumenter } = await load('@stryker-mutator/instrumenter');
const { createInjector } = await load('typed-inject');
const { commonTokens } = await load('@stryker-mutator/api/plugin');

const silent = new Proxy({}, { get: (_, name) => (name.startsWith('is') ? () => false : () => {}) });
const instrumenter = createInjector().provideValue(commonTokens.logger, silent).injectFunction(createInstrumenter);
const sources = process.argv.slice(2).map((name) => ({ name, mutate: true, content: fs.readFileSync(name, 'utf8') }));
const { files, mutants } = await instrumenter.instrument(sources, { ignorers: [], plugins: null, excludedMutations: [] });
for (const { name, content } of files) fs.writeFileSync(name, content);

const found = mutants.map(({ id, fileName, mutatorName, replacement, location: { start, end } }) => {
  const lines = sources.find(({ name }) => name === fileName).content.split('\n');
  const text = lines.slice(start.line, end.line + 1);
  text[text.length - 1] = text.at(-1).slice(0, end.column);
  text[0] = text[0].slice(start.column);
  return {
    id, key: `key-${id}`, file: fileName, mutator: mutatorName, original: text.join('\n'), replacement,
    line: start.line + 1, column: start.column + 1, endLine: end.line + 1, endColumn: end.column + 1, static: false,
  };
});
process.stdout.write(JSON.stringify(found));
