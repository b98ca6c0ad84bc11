/** One run of a program, with a mutant on or with none: in which world, how many visits it may take, what came of it. */

import { Run, Unusable, asSeen, isThenable, settle } from './run.mjs';
import { Exited, enter } from './world.mjs';

export const MOST_HITS = 150_000; // visits to mutated places in one run of the original; more is taken for an endless loop

const engine = (globalThis.__stryker__ ??= {});
engine.mutantCoverage = { static: {}, perTest: {} };

class Endless extends Error {}

/** Of the run that was last: hits: mutant id → visits; count: a few for each visit. work: visits in all runs since it was set. */
export const meter = { hits: {}, count: 0, work: 0 };
let limit = 0;
// The engine's own code asks at each visit which test runs. To count there is many times cheaper than to trap what it notes.
Object.defineProperty(engine, 'currentTestId', {
  get() {
    if (++meter.count > limit) throw new Endless();
    return 'run';
  },
});

export function arm(mutant, world, most) {
  // What a mutant does is a kill where this engine shows it: what another would do is asked of the original.
  enter(mutant === undefined ? world : { ...world, isRough: false });
  meter.hits = {};
  meter.work += meter.count;
  meter.count = 0;
  limit = most;
  engine.mutantCoverage.perTest.run = meter.hits;
  engine.activeMutant = mutant;
  engine.hitCount = 0;
  engine.hitLimit = most;
}

export function disarm() {
  engine.activeMutant = undefined;
  engine.hitLimit = undefined;
}

/** One run: { value, args, hits } or { error, at, hits } or { unusable, endless }. */
export async function perform(program, namespaces, mutant, world, most) {
  arm(mutant, world, most);
  const run = new Run(namespaces);
  try {
    const steps = run.perform(program);
    let next = steps.next();
    while (!next.done) {
      let settled;
      try {
        settled = isThenable(next.value) ? await settle(next.value) : next.value;
      } catch (error) {
        next = steps.throw(error);
        continue;
      }
      next = steps.next(settled);
    }
    return { value: asSeen(program, next.value), args: run.lastArgs, hits: meter.count };
  } catch (error) {
    if (error instanceof Endless || /^Stryker: Hit count limit/.test(error?.message))
      return { unusable: 'endless', endless: true };
    if (error instanceof Exited || error instanceof Unusable || error?.code === 'ERR_ACCESS_DENIED' || !run.inCode)
      return { unusable: String(error?.message) };
    return { error, at: run.at, hits: meter.count };
  } finally {
    disarm();
  }
}
