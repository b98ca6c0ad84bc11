// Loaded by vitest before each test file, where the tests run: guard, switch, and what is seen of each test.
import { afterAll, afterEach, assert, beforeAll, beforeEach, chai, expect, inject } from 'vitest';
import { shutWindows } from './guard.mjs';
import { Session } from './session.mjs';

const request = inject('doit-mutate');
delete globalThis.__vitest_worker__?.providedContext?.['doit-mutate']; // a test that asked would know the mutant
const session = new Session({ ...request, only: null, options: null });
shutWindows({ hasInput: false });
const { moduleCache: modules } = globalThis.__vitest_worker__ ?? {};
session.answer.files =
  request.files ?? [globalThis.__vitest_worker__?.filepath].filter(Boolean).map((f) => session.relative(f));
session.guard();

const matchers = chai.Assertion.prototype;
beforeAll(() =>
  session.begin([
    ['expect', expect],
    ['matchers of expect', matchers],
    ['assert', assert],
  ]),
);
beforeEach(({ task }) => session.started(titleOf(task)));
afterEach(() => session.between());
afterAll(async (...given) => {
  const left = await session.left();
  const { mutantCoverage: coverage, hitCount, hitLimit } = session.stryker;
  const file = given.find((value) => value?.meta) ?? given[0];
  file.meta['doit-mutate'] = {
    coverage: plain(coverage),
    left,
    looped: Boolean(request.mutant) && hitCount > hitLimit,
    loads: modules && [...modules.keys()].map((id) => id.replace(/^\/@fs(?=\/)|\?.*$/g, '')),
  };
});

function titleOf(test) {
  const names = [test.name];
  for (let at = test.suite; at; at = at.suite) names.unshift(at.name);
  return names.join(' ').trim();
}

const plain = (coverage) => JSON.parse(JSON.stringify(coverage));
