// Our own tests as the project's formatter has them: each block by itself, so that nobody else's bytes are looked at.
//
// request (standard input): { root, write: the test file that they will stand in, tests: [[code, [import statement]]] }
// answer (standard output): { codes: [text] }; a text that a tool cannot read stays as it is. ESLint's fixes come first,
// as in projects that have both; each only where the project has it installed and configured for such a file. What the
// project's compiler would refuse is marked before that.
import child_process from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { marked } from './typed.mjs';

const { root, write, tests } = JSON.parse(fs.readFileSync(0, 'utf8'));
const codes = tests.map(([code]) => code);
const imports = [...new Set(tests.flatMap(([, lines]) => lines))].sort();
const require = createRequire(path.join(root, 'package.json'));
const file = path.join(root, write);
const CONFIGURES_ESLINT = /^(eslint\.config\.[cm]?[jt]s|\.eslintrc(\.\w+)?)$/;
const manifest = read('package.json');

function read(name) {
  try {
    return JSON.parse(fs.readFileSync(path.join(root, name), 'utf8'));
  } catch {
    return {};
  }
}

function installed(name) {
  try {
    return require(name);
  } catch {
    return null;
  }
}

async function fixer() {
  if (!manifest.eslintConfig && !fs.readdirSync(root).some((name) => CONFIGURES_ESLINT.test(name))) return null;
  const { ESLint } = installed('eslint') ?? {};
  if (!ESLint) return null;
  const eslint = new ESLint({ cwd: root, fix: true });
  if (await eslint.isPathIgnored(file)) return null;
  return async (code) => (await eslint.lintText(`${code}\n`, { filePath: file }))[0]?.output ?? code;
}

async function formatter() {
  const prettier = installed('prettier');
  if (!prettier) return null;
  const config = await prettier.resolveConfig(file);
  if (!config && !manifest.devDependencies?.prettier && !manifest.dependencies?.prettier) return null;
  const { ignored } = await prettier.getFileInfo(file, { ignorePath: path.join(root, '.prettierignore') });
  return ignored ? null : (code) => prettier.format(code, { ...config, filepath: file });
}

function biome() {
  if (!fs.readdirSync(root).some((name) => /^biome\.jsonc?$/.test(name))) return null;
  const at = path.join(root, 'node_modules/@biomejs/biome/bin/biome');
  if (!fs.existsSync(at)) return null;
  const words = [at, 'format', `--stdin-file-path=${write}`];
  return (code) => child_process.execFileSync(process.execPath, words, { cwd: root, input: `${code}\n`, encoding: 'utf8', stdio: 'pipe' });
}

// The codes as its compiler takes them, where the project has one.
function compilable() {
  if (!/\.[cm]?ts$/.test(write)) return codes;
  try {
    const typescript = installed('typescript');
    return typescript ? marked(typescript, file, imports, codes) : codes;
  } catch (error) {
    console.error(`typescript: ${error.message}`);
    return codes;
  }
}

const tools = [];
for (const make of [fixer, formatter, biome]) {
  try {
    const tool = await make();
    if (tool) tools.push(tool);
  } catch (error) {
    console.error(`${make.name}: ${error.message}`); // its own configuration does not load: what it says is not known
  }
}
const tidied = [];
for (let code of compilable()) {
  for (const tool of tools) {
    try {
      code = (await tool(code)).trimEnd();
    } catch {
      // it stays as it is: the proof is about the text that stands there
    }
  }
  tidied.push(code);
}
process.stdout.write(JSON.stringify({ codes: tidied }));
