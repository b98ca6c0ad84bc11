/**
 * The worker as seen from outside: give an order, get a reply. A run that hangs, eats memory or ends the worker costs
 * that run: the worker is started anew and the order given again without it.
 */

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const WATCHDOG_MS = 1500; // longest one run may take
const TICK_MS = 100;
const START_MS = 10_000; // longest the modules may take to load
const HEAP_MB = 192;
const MOST_DEATHS = 10; // of one search; then what is left is given up

export class GivenUp extends Error {}

/** Milliseconds of CPU that a process has used; Infinity where the system doesn't say. */
function cpuMs(pid) {
  try {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10; // in ticks of 1/100 s
  } catch {
    return Infinity;
  }
}

export class Laboratory {
  deaths = 0;
  #child = null;
  #spent = 0; // of workers that are gone
  #setup;

  /** setup: what the worker's `start` order takes. */
  constructor(setup) {
    this.#setup = setup;
  }

  /** The exports of the modules: file → name → class | function | value. Throws GivenUp where they don't load. */
  async start() {
    const { failed, exports, died } = await this.#ask({ order: 'start', ...this.#setup }, START_MS);
    if (died) throw new GivenUp(`the modules end the process as they load (${died})`);
    if (failed) throw new GivenUp(`the modules do not load: ${failed}`);
    return exports;
  }

  /**
   * Runs programs on the original and on the mutants of `alive` that they reach; `onResult` gets each program's result as
   * it comes; those that a death takes are asked for again. A program whose original ends the worker has no result; a mutant
   * that does so is passed over in that program, and handed to `onLethal`. avoid: () → mutants not to run; most: visits
   * that a run of the original may take.
   */
  async explore(programs, how) {
    const { alive, avoid, most, onResult, onLethal = () => {} } = how;
    let left = programs;
    let spared = [];
    let careful = false;
    while (left.length) {
      if (!this.#child) await this.start();
      let done = 0;
      const onPart = (result) => onResult(left[done++], result);
      const { failed, died } = await this.#ask(
        { order: 'explore', programs: left, alive, avoid: avoid(), spared, careful, most },
        WATCHDOG_MS,
        onPart,
      );
      if (failed) throw new GivenUp(failed);
      if (!died) return;
      this.#countDeath();
      const [at, id] = this.lastNote.split(' ');
      if (Number(at)) spared = [];
      const lost = left.slice(done, Number(at));
      left = left.slice(Math.max(done, Number(at)));
      if (lost.length) await this.explore(lost, how);
      if (id === '+') {
        careful = true; // from here on, so that the next one costs one death and not two
        continue;
      }
      if (id === '-') left = left.slice(1);
      else {
        spared = [...spared, id];
        onLethal(id);
      }
    }
  }

  #countDeath() {
    if (++this.deaths > MOST_DEATHS) throw new GivenUp('too many runs hung or ended the process');
  }

  /** Reply to an order, given again without what the worker died of; null once it died `most` times of this one. */
  async order(message, most = MOST_DEATHS) {
    const avoid = [];
    while (avoid.length < most) {
      if (!this.#child) await this.start();
      const answer = await this.#ask({ ...message, avoid }, WATCHDOG_MS);
      if (answer.failed) throw new GivenUp(answer.failed);
      if (!answer.died) return answer;
      this.#countDeath();
      avoid.push(this.lastNote);
    }
    return null;
  }

  /** Milliseconds of CPU that the workers have used, and this process. */
  get cpu() {
    const { user, system } = process.cpuUsage();
    const now = this.#child ? cpuMs(this.#child.pid) : 0;
    return (user + system) / 1000 + this.#spent + (Number.isFinite(now) ? now : 0);
  }

  stop() {
    const used = this.#child ? cpuMs(this.#child.pid) : 0;
    if (Number.isFinite(used)) this.#spent += used;
    this.#child?.kill('SIGKILL');
    this.#child = null;
  }

  #ask(message, patience, onPart) {
    this.#child ??= this.#spawn();
    const child = this.#child;
    this.lastNote = '';
    let idle = 0;
    let why = null;
    return new Promise((resolve) => {
      const done = (answer) => {
        clearInterval(timer);
        child.removeAllListeners('message');
        child.removeAllListeners('exit');
        child.stdio[3].removeAllListeners('data');
        resolve(answer);
      };
      // Ticks, not the clock: while this process itself is held up, no tick passes. And on a machine that is busy with
      // other things a worker that was given no time does not hang.
      let spent = 0;
      const timer = setInterval(() => {
        if (idle === 0) spent = cpuMs(child.pid);
        idle += TICK_MS;
        const starved = cpuMs(child.pid) - spent < patience / 2;
        if (idle <= patience || (starved && idle <= 5 * patience)) return;
        why = 'hangs';
        child.kill('SIGKILL');
      }, TICK_MS);
      child.stdio[3].on('data', (chunk) => {
        idle = 0;
        const notes = chunk.trimEnd();
        this.lastNote = notes.slice(notes.lastIndexOf('\n') + 1);
      });
      child.on('message', ({ parts, reply }) => {
        idle = 0;
        if (parts) parts.forEach(onPart);
        else done(reply);
      });
      child.once('exit', (exitCode, signal) => {
        this.#child = null;
        done({ died: why ?? `exit ${exitCode ?? signal}` });
      });
      child.send(message);
    });
  }

  #spawn() {
    const permission = process.allowedNodeEnvironmentFlags.has('--permission')
      ? '--permission'
      : '--experimental-permission';
    const flags = [
      permission,
      '--allow-fs-read=*',
      '--experimental-vm-modules',
      '--experimental-import-meta-resolve',
      '--no-warnings',
      '--single-threaded-gc', // threads beside it cost more CPU than they save time
    ];
    const script = path.join(import.meta.dirname, 'worker.mjs');
    const child = spawn(process.execPath, [...flags, `--max-old-space-size=${HEAP_MB}`, script], {
      cwd: this.#setup.root,
      env: { PATH: process.env.PATH, TZ: 'UTC' },
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    child.stdio[3].setEncoding('utf8');
    child.on('error', () => {});
    return child;
  }
}
