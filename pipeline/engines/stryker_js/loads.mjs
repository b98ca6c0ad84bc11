// Which file loads which, of all that is loaded from now on: what one process that runs the tests of several scopes
// tells of each of them. Hooks: https://nodejs.org/api/module.html#customization-hooks
import module from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { types } from 'node:util';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';

const { isModuleNamespaceObject } = types;
const HOOKS = `let port;
export const initialize = (given) => void (port = given);
export const resolve = async (specifier, context, next) => {
  const found = await next(specifier, context);
  port.postMessage([context.parentURL, found.url]);
  return found;
};`;
const LOADERS = /--(experimental-)?(loader|import|require)\b|(^|\s)-r\b/;

export class Loads {
  #root;
  #of = new Map(); // file -> the files that it loads
  #port = null; // where what the hooks see comes in, if they are in a thread of their own
  #blind; // a load may not have been seen: somebody else has hooks too, and need not call ours

  // root: of the project; files are told by their paths there
  constructor(root) {
    this.#root = root;
    this.#blind = LOADERS.test([process.env.NODE_OPTIONS ?? '', ...process.execArgv].join(' '));
    this.#watchImports();
    this.#watchRequires();
    for (const name of ['register', 'registerHooks']) {
      const { [name]: real } = module;
      if (!real) continue;
      module[name] = (...given) => {
        this.#blind = true;
        return Reflect.apply(real, module, given);
      };
    }
    module.syncBuiltinESMExports();
  }

  #watchImports() {
    if (module.registerHooks) {
      module.registerHooks({
        resolve: (specifier, context, next) => {
          const found = next(specifier, context);
          this.#note(context.parentURL, found.url);
          return found;
        },
      });
      return;
    }
    // They are not told of what a required ES module imports. mocha imports where it believes that it cannot require.
    Object.defineProperty(process.features, 'require_module', { value: false });
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.unref();
    const url = `data:text/javascript,${encodeURIComponent(HOOKS)}`;
    module.register(url, { data: port2, transferList: [port2] });
  }

  #watchRequires() {
    const { _load } = module;
    const note = (request, parent) => {
      try {
        if (parent?.filename) this.#note(parent.filename, module._resolveFilename(request, parent));
      } catch {
        // who asked for it is told so, by the true one
      }
    };
    module._load = (request, parent, ...rest) => {
      note(request, parent);
      const loaded = Reflect.apply(_load, module, [request, parent, ...rest]);
      if (this.#port && isModuleNamespaceObject(loaded)) this.#blind = true;
      return loaded;
    };
  }

  #note(from, to) {
    const [a, b] = [fileOf(from), fileOf(to)];
    if (a === null || b === null) return;
    if (!this.#of.has(a)) this.#of.set(a, new Set());
    this.#of.get(a).add(b);
  }

  // What each test file loads, itself included, however deep; `shared`: what something else than those loads. null: it
  // could not be told.
  told(tests) {
    for (let m; this.#port && (m = receiveMessageOnPort(this.#port)); ) this.#note(...m.message);
    if (this.#blind) return null;
    const places = new Set(tests.map((test) => path.resolve(this.#root, test)));
    // The runner loads every test file, and is not what loads what they load.
    const steps = (file) => [...(this.#of.get(file) ?? [])].filter((next) => !places.has(next) || this.#isOurs(file));
    const from = (files) => {
      const found = new Set(files);
      for (const file of found) for (const next of steps(file)) found.add(next);
      return found;
    };
    const named = (files) =>
      [...files].filter(this.#isOurs, this).map((file) => path.relative(this.#root, file).split(path.sep).join('/'));
    const each = [...places].map((test) => from([test]));
    const theirs = new Set(each.flatMap((files) => [...files]));
    const shared = from([...this.#of.keys()].filter((file) => !theirs.has(file)));
    return { each: Object.fromEntries(tests.map((test, i) => [test, named(each[i])])), shared: named(shared) };
  }

  #isOurs(file) {
    return file.startsWith(this.#root + path.sep) && !file.includes(`${path.sep}node_modules${path.sep}`);
  }
}

function fileOf(place) {
  if (typeof place !== 'string') return null;
  if (place.startsWith('file:')) return fileURLToPath(place);
  return path.isAbsolute(place) ? place : null;
}
