// Runs test files once, in a fresh process, and writes what each test did: request on standard input, both as JSON
// (session.mjs). How a runner does it is one module, in_RUNNER.mjs: `run(session)`, which tells the session of each test.
import fs from 'node:fs';
import { shutWindows } from './guard.mjs';
import { Session } from './session.mjs';

const session = new Session(JSON.parse(fs.readFileSync(0, 'utf8')));
shutWindows();
// Stryker's worker waits for what never comes, until its time limit.
if (session.unlimited) setInterval(() => {}, 2 ** 30);
try {
  const { run } = await import(`./in_${session.runner}.mjs`);
  await run(session);
} catch (error) {
  session.finish(error ?? 'the test files could not be loaded');
}
process.on('uncaughtException', () => {}); // a runner makes it the running test's failure
