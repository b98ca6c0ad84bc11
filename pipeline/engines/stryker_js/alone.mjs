// One mutant whose code runs while modules are loaded, met by tests in a process that has met no other.
//
// Stryker has a new worker for it, where the runner cannot load modules again: 0.57 s of CPU, of which the most is
// Stryker's own start. A process that only runs tests takes 0.13 s.
import fs from 'node:fs';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('run_tests.mjs', import.meta.url));
const SLACK = 0.95; // of Stryker's time limit: whoever passes that costs a worker
const FAIR = 0.8; // of it: the part that the tests, and not the start of their process, must have had
let known = null; // the runner's own configuration, as the first process found it

// run: as Stryker's mutantRun takes it; tests: { files, titles }. The result is of the same kind.
export async function alone(runner, scratch, { activeMutant, timeout, hitLimit, disableBail }, { files, titles }) {
  const place = path.join(scratch, `alone-${activeMutant.id}`);
  const [asked, out] = [`${place}-asked.json`, `${place}-said.json`];
  const request = {
    root: process.cwd(), runner, scratch, files, out, mutant: activeMutant.id, shuffle: null, only: titles,
    watched: false, record: false, options: known, hitLimit, bail: !disableBail, unlimited: true,
  }; // prettier-ignore
  fs.writeFileSync(asked, JSON.stringify(request));
  const input = fs.openSync(asked);
  const env = { ...process.env, __STRYKER_ACTIVE_MUTANT__: activeMutant.id }; // for processes that the tests start
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM], { stdio: [input, 'ignore', 'ignore'], env });
  fs.closeSync(input);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, SLACK * timeout);
  const [code, signal] = await once(child, 'exit');
  clearTimeout(timer);
  const fair = !late || sinceBegun(`${out}.begun`) >= FAIR * timeout;
  fs.writeFileSync(`${place}-ended`, fair ? 'fair' : 'late');
  if (late) return { status: 'timeout' };
  let answer;
  try {
    answer = JSON.parse(fs.readFileSync(out, 'utf8'));
  } catch {
    return { status: 'error', errorMessage: `the test process died: ${signal ?? `exit code ${code}`}` };
  }
  known ??= answer.options;
  return judged(answer);
}

// Milliseconds; 0 where it has not.
function sinceBegun(file) {
  const { mtimeMs } = fs.statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: Infinity };
  return Math.max(0, Date.now() - mtimeMs);
}

// As @stryker-mutator/api's toMutantRunResult has it.
function judged({ error, looped, tests }) {
  if (looped) return { status: 'timeout', reason: 'Hit limit reached' };
  if (error) return { status: 'error', errorMessage: error };
  const ran = tests.filter(({ state }) => state !== 'skipped');
  const failed = ran.filter(({ state }) => state === 'failed');
  if (failed.length === 0) return { status: 'survived', nrOfTests: ran.length };
  const [{ message }] = failed;
  return { status: 'killed', failureMessage: message, killedBy: failed.map(({ title }) => title), nrOfTests: ran.length };
}
