/**
 * Loads the project's modules, as often as asked, each time with state of their own. The one place that knows how
 * modules are loaded: ES modules through node:vm, CommonJS as functions of `require`, `module` and `exports`.
 */

import fs from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';

import { paths } from './world.mjs';

const foreign = new Map(); // url → namespace: packages and built-ins are shared by all instances of all loaders

const OURS = { os, path: paths }; // what differs from world to world

export class Loader {
  #root;
  #files;
  #code;
  #targets;
  #functions = new Map(); // file → the compiled CommonJS wrapper
  #instead;

  /**
   * root: absolute path of the project. files: what programs may name. code: file → { text, format } of the project's
   * modules; targets: file → specifier → file. instead: (specifier, from, whole) → the namespace that `from` gets in place
   * of what it asks for, `whole` being the project's own that it would get; undefined for what is really there.
   */
  constructor(root, files, code, targets, instead = () => undefined) {
    this.#root = fs.realpathSync(root) + path.sep;
    this.#files = files;
    this.#code = code;
    this.#targets = targets;
    this.#instead = instead;
  }

  #url(file) {
    return pathToFileURL(path.join(this.#root, file)).href;
  }

  /** A fresh instance of some files, or of the whole project: file → namespace. Throws what a module throws as it loads. */
  async instance(files = this.#files) {
    const made = { modules: new Map(), commonJs: new Map() };
    const namespaces = {};
    for (const file of files) {
      if (file in this.#code) namespaces[file] = await this.load(file, made);
    }
    return namespaces;
  }

  /** The namespace of one module; those it needs are kept in `made`. */
  async load(file, made = { modules: new Map(), commonJs: new Map() }) {
    const module = await this.#module(file, made);
    if (module.status === 'unlinked') await module.link((specifier, from) => this.#link(specifier, from, made));
    if (module.status !== 'evaluated') await module.evaluate();
    return module.namespace;
  }

  async #link(specifier, { identifier }, made) {
    const from = identifier;
    const file = this.#targets[from]?.[specifier];
    const whole = file && this.#instead.length > 2 && this.#mayLoad(file, from) ? await this.load(file, made) : undefined;
    const stand = file && !whole ? undefined : this.#instead(specifier, from, whole);
    if (stand) return this.#wrap(`${specifier} for ${from}`, stand, made);
    if (file) return this.#module(file, made);
    if (specifier.startsWith('node:') || builtinModules.includes(specifier)) return this.#package(specifier, made);
    return this.#package(import.meta.resolve(specifier, this.#url(from)), made);
  }

  /** May a module be evaluated before the one that asks for it is linked? Not where it needs that one itself. */
  #mayLoad(file, from, seen = new Set()) {
    if (file === from || seen.has(file)) return file !== from;
    seen.add(file);
    return Object.values(this.#targets[file] ?? {}).every((next) => !next || this.#mayLoad(next, from, seen));
  }

  async #module(file, made) {
    const known = made.modules.get(file);
    if (known) return known;
    const { format } = this.#code[file];
    const module =
      format === 'module'
        ? this.#compile(file, made)
        : this.#wrap(file, namespaceOf(this.#require(file, made)), made);
    made.modules.set(file, module);
    return module;
  }

  #compile(file, made) {
    const source = this.#code[file];
    const url = this.#url(file);
    const module = new vm.SourceTextModule(source.text, {
      identifier: file,
      cachedData: source.cachedData,
      initializeImportMeta: (meta) => {
        Object.assign(meta, { url, filename: fileURLToPath(url), dirname: path.dirname(fileURLToPath(url)) });
      },
      importModuleDynamically: async (specifier) => {
        const target = await this.#link(specifier, { identifier: file }, made);
        if (target.status === 'unlinked') await target.link((inner, from) => this.#link(inner, from, made));
        if (target.status !== 'evaluated') await target.evaluate();
        return target;
      },
    });
    source.cachedData ??= module.createCachedData();
    return module;
  }

  /** module.exports of a CommonJS file, evaluated once an instance. */
  #require(file, made) {
    const known = made.commonJs.get(file);
    if (known) return known.exports;
    const module = { exports: {}, id: file, filename: path.join(this.#root, file), loaded: false, children: [] };
    made.commonJs.set(file, module);
    if (!this.#functions.has(file)) {
      const names = ['exports', 'require', 'module', '__filename', '__dirname'];
      const text = this.#code[file].text.replace(/^#!/, '//');
      this.#functions.set(file, vm.compileFunction(text, names, { filename: module.filename }));
    }
    const real = createRequire(this.#url(file));
    const require = (specifier) => {
      const target = this.#targets[file]?.[specifier];
      if (target) {
        if (this.#code[target].format === 'module') throw new Error(`${file} requires ${target}, an ES module`);
        const exports = this.#require(target, made);
        const own = this.#instead(specifier, file, { default: exports });
        return own ? own.default : exports;
      }
      const stand = this.#instead(specifier, file) ?? OURS[specifier.replace(/^node:/, '')];
      return stand ? (stand.default ?? stand) : real(specifier);
    };
    Object.assign(require, { resolve: real.resolve, cache: {}, main: undefined });
    const { exports, filename } = module;
    Reflect.apply(this.#functions.get(file), exports, [exports, require, module, filename, path.dirname(filename)]);
    module.loaded = true;
    return module.exports;
  }

  #wrap(name, namespace, made) {
    const known = made.modules.get(name);
    if (known) return known;
    const names = Object.keys(namespace);
    const module = new vm.SyntheticModule(
      names,
      function fill() {
        for (const key of names) this.setExport(key, namespace[key]);
      },
      { identifier: name },
    );
    made.modules.set(name, module);
    return module;
  }

  async #package(url, made) {
    if (!foreign.has(url)) {
      const json = url.endsWith('.json');
      foreign.set(url, json ? { default: JSON.parse(fs.readFileSync(fileURLToPath(url), 'utf8')) } : await import(url));
    }
    const own = OURS[url.replace(/^node:/, '')]; // whose constants are others elsewhere
    return this.#wrap(url, own ? { ...foreign.get(url), ...own, default: own } : foreign.get(url), made);
  }
}

/** What an ES module sees of module.exports. */
function namespaceOf(exports) {
  const named = exports !== null && ['object', 'function'].includes(typeof exports) ? exports : {};
  return { ...Object.fromEntries(Object.keys(named).map((key) => [key, named[key]])), default: exports };
}
