// The project's test environment for jest, with ours in it: the guard around what tests see, and what each of them did.
// `session` and `base` (the file of the project's environment) are set before jest loads this.
'use strict';

const vm = require('node:vm');

const KINDS = '[function () {}, async function () {}, function* () {}, async function* () {}]';
// jest's world is a proxy that puts a setter of its own in the place of any: a property for good has none there.
const define = (world, name, { get }) => Object.defineProperty(world, name, { get });
const shared = { session: null, base: null };

function titleOf({ name, parent }) {
  const names = [name];
  for (let at = parent; at && at.parent; at = at.parent) names.unshift(at.name);
  return names.join(' ');
}

// `expect` and what it can tell, which `expect.extend` changes.
function libraryOf(world) {
  const { matchers } = world[Symbol.for('$$jest-matchers-object')] ?? {};
  const found = [
    ['expect', world.expect],
    ['matchers of expect', matchers],
  ];
  return found.filter(([, object]) => object !== undefined);
}

const isTimeLimit = (error) => /^(thrown: ")?Exceeded timeout/.test(error?.message ?? error ?? '');

// `base` is known only when jest asks for the class.
function makeEnvironment() {
  const { session, base } = shared;
  const loaded = require(base);
  const Base = loaded.TestEnvironment ?? loaded.default ?? loaded;
  return class Environment extends Base {
    constructor(config, context) {
      super(config, context);
      this.file = context.testPath;
      const { files } = session.answer;
      if (!files.includes(session.relative(this.file))) files.push(session.relative(this.file));
      const theirs = this.handleTestEvent?.bind(this);
      this.handleTestEvent = async (event, state) => {
        await theirs?.(event, state);
        await this.tell(event);
      };
    }

    async setup() {
      await super.setup();
      session.guard(this.global, { kinds: vm.runInContext(KINDS, this.getVmContext()), define });
    }

    async tell({ name, test, error }) {
      if (name === 'run_start') session.begin(libraryOf(this.global), this.global);
      else if (name === 'test_start') session.started(titleOf(test));
      else if (name === 'test_skip' || name === 'test_todo')
        session.tested(this.file, titleOf(test), { state: 'skipped' });
      else if (name === 'test_fn_failure') this.failures.set(test, { error, isOther: isTimeLimit(error) });
      else if (name === 'hook_failure' && test) this.failures.set(test, { error, isOther: true });
      else if (name === 'test_done') {
        // What is noted of the failure by then may be a text that jest made of it.
        const failure = this.failures.get(test) ?? { error: [test.errors[0]].flat()[0], isOther: false };
        session.tested(
          this.file,
          titleOf(test),
          test.errors.length ? { state: 'failed', ...failure } : { state: 'passed' },
        );
      } else if (name === 'error') session.answer.error ??= String(error?.stack ?? error);
      else if (name === 'run_finish') for (const [title, left] of await session.left()) session.leaves(title, left);
    }

    failures = new Map(); // test -> how it failed first
  };
}

module.exports = Object.defineProperties(shared, {
  __esModule: { value: true },
  default: { enumerable: true, get: makeEnvironment },
});
