// jest, as a library, all files in this process. Each file has a world of its own there, made by a test environment: ours
// (jest_environment.cjs) is the project's with the guard and the switch in it, and tells of each test.
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ENVIRONMENT = fileURLToPath(new URL('./jest_environment.cjs', import.meta.url));

export async function run(session) {
  const { require, root, scratch, only, shuffle, answer } = session;
  process.env.NODE_ENV ??= 'test';
  const ofJest = createRequire(require.resolve('jest'));
  const core = ofJest.resolve('@jest/core');
  const { runCLI } = ofJest('@jest/core');
  const { readConfigs } = createRequire(core)('jest-config');
  const shared = createRequire(import.meta.url)(ENVIRONMENT);
  const asked = { $0: 'jest', _: [], watchman: false, ci: true };
  const { configs } = await readConfigs(asked, [root]);
  shared.base = configs[0].testEnvironment;
  shared.session = session;
  session.loads(session.files ?? []);
  const quiet = { silent: true, reporters: [], coverage: false, collectCoverage: false, notify: false, verbose: false };
  const { results } = await runCLI(
    {
      ...asked,
      ...quiet,
      ...(session.files === null
        ? {}
        : { _: session.files.map((file) => path.resolve(root, file)), runTestsByPath: true }),
      ...(only === null ? {} : { testNamePattern: `^(${only.map(literal).join('|')})$` }),
      ...(shuffle === null ? {} : { randomize: true, seed: shuffle }),
      runInBand: true,
      cache: false,
      cacheDirectory: path.join(scratch, 'jest'),
      testEnvironment: ENVIRONMENT,
      passWithNoTests: true,
    },
    [root],
  );
  for (const { testFilePath, testExecError, failureMessage, testResults } of results.testResults) {
    if (testExecError || (failureMessage && testResults.length === 0)) {
      answer.error ??= `${session.relative(testFilePath)}: ${testExecError?.stack ?? testExecError?.message ?? failureMessage}`;
    }
  }
  await session.ended();
  session.finish();
}

const literal = (title) => title.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
