/**
 * The project's modules: which file a specifier means, in which of the two module systems a file is written, and its
 * text without types. Everything that loads or reads the project's code asks here.
 */

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { nodes, parseSource } from './source.mjs';

export const IS_CODE = /\.[cm]?[jt]s$/;
export const IS_TYPED = /\.[cm]?ts$/;
const ENDINGS = ['', '.js', '.ts', '.mjs', '.cjs', '.mts', '.cts'];

export class Untyped extends Error {}

export class Modules {
  #parsed = new Map(); // text → tree
  #strip = null;

  /** root: absolute path of the project; parserPath: the entry of @babel/parser; originals: Map file → text. */
  constructor(root, parserPath, originals) {
    Object.assign(this, { root, originals, parserPath });
    this.parser = createRequire(import.meta.url)(parserPath);
  }

  /** What is on disk, or what a mutated file was; null where there is no such file. */
  text(file) {
    return this.originals.get(file) ?? this.onDisk(file);
  }

  onDisk(file) {
    try {
      return fs.readFileSync(path.join(this.root, file), 'utf8');
    } catch {
      return null;
    }
  }

  parse(text) {
    if (!this.#parsed.has(text)) this.#parsed.set(text, parseSource(this.parser, text));
    return this.#parsed.get(text);
  }

  /** Is a file written in what the parser knows? A test file may be in more: what a plugin of its own takes out. */
  reads(file) {
    try {
      return Boolean(this.parse(this.text(file)));
    } catch {
      return false;
    }
  }

  /** The file of the project that a specifier in `from` means; null where it is none of its code. */
  resolve(specifier, from) {
    if (!/^\.\.?(\/|$)/.test(specifier ?? '')) return this.#ownName(specifier);
    const bare = path.posix.join(path.posix.dirname(from), decodeURI(specifier.replace(/[?#].*/, '')));
    return this.#fileAt(bare.replace(/\/$/, '') || '.');
  }

  #fileAt(bare) {
    const isFile = (file) => IS_CODE.test(file) && !file.startsWith('..') && this.text(file) !== null;
    const plain = ENDINGS.map((ending) => bare + ending).find(isFile);
    if (plain) return plain;
    // TypeScript names a module by what it will be called once it is compiled.
    const source = bare.replace(/\.([cm]?)js$/, '.$1ts');
    if (source !== bare && isFile(source)) return source;
    const { main } = this.#manifest(bare);
    return (
      (main && this.#fileAt(path.posix.join(bare, main))) ??
      ENDINGS.slice(1)
        .map((ending) => path.posix.join(bare, `index${ending}`))
        .find(isFile) ??
      null
    );
  }

  /** A package's own tests may import it by its name. */
  #ownName(specifier) {
    const { name, main, exports } = this.#manifest('.');
    if (!name || specifier !== name) return null;
    const entry = [exports?.['.'] ?? exports, main ?? 'index.js'].find((e) => typeof e === 'string');
    return entry ? this.#fileAt(path.posix.join('.', entry)) : null;
  }

  #manifest(folder) {
    try {
      return JSON.parse(fs.readFileSync(path.join(this.root, folder, 'package.json'), 'utf8'));
    } catch {
      return {};
    }
  }

  /** 'module' or 'commonjs': by what stands in the file, where its name leaves it open. */
  format(file, text = this.text(file)) {
    if (/\.m[jt]s$/.test(file)) return 'module';
    if (/\.c[jt]s$/.test(file)) return 'commonjs';
    if (this.parse(text).program.sourceType === 'module') return 'module';
    if (/\b(require\s*\(|module\.exports|exports\.)/.test(text)) return 'commonjs';
    for (let folder = path.posix.dirname(file); ; folder = path.posix.dirname(folder)) {
      if (fs.existsSync(path.join(this.root, folder, 'package.json')))
        return this.#manifest(folder).type === 'module' ? 'module' : 'commonjs';
      if (folder === '.' || folder === '/') return 'commonjs';
    }
  }

  /** The files of the project that `file` imports or requires. */
  imported(file, text = this.text(file)) {
    let tree;
    try {
      tree = this.parse(text);
    } catch {
      return []; // a file that does not parse names no modules
    }
    return specifiers(tree)
      .map((specifier) => this.resolve(specifier, file))
      .filter(Boolean);
  }

  /** `files` and all that they need, directly or not. */
  closure(files) {
    const found = new Set();
    for (const queue = [...files]; queue.length;) {
      const file = queue.pop();
      if (found.has(file)) continue;
      found.add(file);
      queue.push(...this.imported(file));
    }
    return [...found];
  }

  /** { text, format } as the loader takes it. Throws Untyped where types cannot be taken out. */
  loadable(file, text) {
    const format = this.format(file, text);
    return { format, text: IS_TYPED.test(file) ? this.#untyped(file, text) : text };
  }

  #untyped(file, text) {
    this.#strip ??= this.#stripper();
    try {
      return this.#strip(file, text);
    } catch (error) {
      throw new Untyped(`types cannot be taken out of ${file}: ${error.message.split('\n')[0]}`);
    }
  }

  /** What StrykerJS itself reads TypeScript with, else the project's own compiler: nothing has to be installed. */
  #stripper() {
    const places = [this.parserPath, fs.realpathSync(this.parserPath), path.join(this.root, 'x.js')];
    const load = (name) => {
      for (const place of places) {
        try {
          return createRequire(place)(name);
        } catch {
          // the next place
        }
      }
      return null;
    };
    const [babel, preset] = [load('@babel/core'), load('@babel/preset-typescript')];
    if (babel && preset)
      return (file, text) =>
        babel.transformSync(text, {
          filename: path.join(this.root, file),
          presets: [[preset.default ?? preset, { onlyRemoveTypeImports: false }]],
          babelrc: false,
          configFile: false,
          compact: false,
          retainLines: true,
        }).code;
    const compiler = load('typescript');
    if (!compiler) throw new Untyped('neither @babel/preset-typescript nor typescript is installed');
    const { ESNext, ES2022 } = { ...compiler.ModuleKind, ...compiler.ScriptTarget };
    return (file, text) =>
      compiler.transpileModule(text, { fileName: file, compilerOptions: { module: ESNext, target: ES2022 } }).outputText;
  }
}

/** What a file imports, exports from and requires. */
export function specifiers(tree) {
  const found = [];
  for (const [node] of nodes(tree.program)) {
    if (/^(Import|Export\w+)Declaration$/.test(node.type) && node.importKind !== 'type' && node.exportKind !== 'type')
      found.push(node.source?.value);
    else if (node.type === 'TSImportEqualsDeclaration') found.push(node.moduleReference.expression?.value);
    else if (node.type === 'CallExpression' && (node.callee.name === 'require' || node.callee.type === 'Import'))
      found.push(node.arguments[0]?.value);
  }
  return found.filter((specifier) => typeof specifier === 'string');
}

const TESTING =
  /^(node:test|node:assert(\/strict)?|assert(\/strict)?|mocha|vitest|@jest\/globals|uvu|uvu\/assert|tape|ava|tap|chai|expect|should|sinon|sinon-chai)$/;

/** [specifier, names] of the packages for testing that a file imports. */
export function packageNames(tree) {
  const found = new Map();
  for (const specifier of specifiers(tree)) if (TESTING.test(specifier)) found.set(specifier, []);
  for (const node of tree.program.body) {
    if (node.type !== 'ImportDeclaration' || !found.has(node.source.value)) continue;
    for (const s of node.specifiers)
      if (s.type === 'ImportSpecifier') found.get(node.source.value).push(s.imported.name ?? s.imported.value);
  }
  return found;
}
