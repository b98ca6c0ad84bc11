/**
 * Loads the project's modules, as often as asked, each time with state of their own. The one place that knows how
 * modules are loaded: ES modules through node:vm, CommonJS through require with the project's cache emptied.
 */

import fs from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';

export class Loader {
  #root;
  #files;
  #sources = new Map(); // url → { text, cachedData }
  #foreign = new Map(); // url → namespace: packages and built-ins are shared by all instances

  /** root: absolute path of the project. files: what programs may name. texts: file → source other than the file's. */
  constructor(root, files, texts = {}) {
    this.#root = fs.realpathSync(root) + path.sep;
    this.#files = files;
    for (const [file, text] of Object.entries(texts)) this.#sources.set(this.#url(file), { text });
  }

  #url(file) {
    return pathToFileURL(path.join(this.#root, file)).href;
  }

  /** A fresh instance of the whole project: file → namespace. Throws what a module throws as it loads. */
  async instance() {
    this.#forgetCommonJs();
    const modules = new Map();
    const namespaces = {};
    for (const file of this.#files) {
      const url = this.#url(file);
      if (!fs.existsSync(fileURLToPath(url))) continue;
      const module = await this.#module(url, modules);
      if (module.status === 'unlinked')
        await module.link((specifier, from) => this.#link(specifier, from.identifier, modules));
      if (module.status !== 'evaluated') await module.evaluate();
      namespaces[file] = module.namespace;
    }
    return namespaces;
  }

  async #link(specifier, from, modules) {
    if (specifier.startsWith('node:') || builtinModules.includes(specifier)) return this.#module(specifier, modules);
    return this.#module(import.meta.resolve(specifier, from), modules);
  }

  async #module(url, modules) {
    const known = modules.get(url);
    if (known) return known;
    const module = this.#isOurs(url) ? this.#compile(url, modules) : this.#wrap(url, await this.#import(url));
    modules.set(url, module);
    return module;
  }

  #compile(url, modules) {
    if (!this.#isEsm(url)) return this.#wrap(url, commonJsNamespace(createRequire(url)(fileURLToPath(url))));
    let source = this.#sources.get(url);
    if (!source) this.#sources.set(url, (source = { text: fs.readFileSync(fileURLToPath(url), 'utf8') }));
    const module = new vm.SourceTextModule(source.text, {
      identifier: url,
      cachedData: source.cachedData,
      initializeImportMeta: (meta) => {
        Object.assign(meta, { url, filename: fileURLToPath(url), dirname: path.dirname(fileURLToPath(url)) });
      },
      importModuleDynamically: async (specifier) => {
        const target = await this.#link(specifier, url, modules);
        if (target.status === 'unlinked')
          await target.link((inner, from) => this.#link(inner, from.identifier, modules));
        if (target.status !== 'evaluated') await target.evaluate();
        return target;
      },
    });
    source.cachedData ??= module.createCachedData();
    return module;
  }

  #wrap(url, namespace) {
    const names = Object.keys(namespace);
    return new vm.SyntheticModule(
      names,
      function fill() {
        for (const name of names) this.setExport(name, namespace[name]);
      },
      { identifier: url },
    );
  }

  async #import(url) {
    if (!this.#foreign.has(url)) {
      const json = url.endsWith('.json');
      this.#foreign.set(
        url,
        json ? { default: JSON.parse(fs.readFileSync(fileURLToPath(url), 'utf8')) } : await import(url),
      );
    }
    return this.#foreign.get(url);
  }

  #isOurs(url) {
    if (!url.startsWith('file:')) return false;
    const file = fileURLToPath(url);
    return (
      file.startsWith(this.#root) && !file.includes(`${path.sep}node_modules${path.sep}`) && /\.[cm]?js$/.test(file)
    );
  }

  #isEsm(url) {
    const file = fileURLToPath(url);
    if (file.endsWith('.mjs')) return true;
    if (file.endsWith('.cjs')) return false;
    for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
      const manifest = path.join(folder, 'package.json');
      if (fs.existsSync(manifest)) return JSON.parse(fs.readFileSync(manifest, 'utf8')).type === 'module';
      if (folder === path.dirname(folder)) return false;
    }
  }

  #forgetCommonJs() {
    const { cache } = createRequire(path.join(this.#root, 'x.js'));
    for (const file of Object.keys(cache)) if (this.#isOurs(pathToFileURL(file).href)) delete cache[file];
  }
}

function commonJsNamespace(exports) {
  const named = exports !== null && ['object', 'function'].includes(typeof exports) ? exports : {};
  return { ...Object.fromEntries(Object.keys(named).map((key) => [key, named[key]])), default: exports };
}
