/**
 * The worker as seen from outside: give an order, get a reply. A run that hangs, eats memory or ends the worker costs
 * that run: the worker is started anew and the order given again without it.
 */

import { spawn } from 'node:child_process';
import path from 'node:path';

const WATCHDOG_MS = 1500; // longest one run may take
const START_MS = 10_000; // longest the modules may take to load
const HEAP_MB = 256;
const MOST_DEATHS = 16; // of one search; then what is left is given up

export class GivenUp extends Error {}

export class Laboratory {
  deaths = 0;
  #child = null;
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
   * Reply to an order. Where the worker dies of it, it is given again with every run noted; what was run at the next
   * death is avoided from then on and handed to `lethal`.
   */
  async order(message, lethal = () => {}) {
    const avoid = [...(message.avoid ?? [])];
    let careful = false;
    for (;;) {
      if (!this.#child) await this.start();
      const answer = await this.#ask({ ...message, avoid, careful }, WATCHDOG_MS);
      if (answer.failed) throw new GivenUp(answer.failed);
      if (!answer.died) return answer;
      if (++this.deaths > MOST_DEATHS) throw new GivenUp('too many runs hung or ended the process');
      if (careful) {
        avoid.push(this.lastNote);
        lethal(this.lastNote);
      }
      careful = true;
    }
  }

  stop() {
    this.#child?.kill('SIGKILL');
    this.#child = null;
  }

  #ask(message, patience) {
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
      // Ticks, not the clock: while this process itself is held up, no tick passes.
      const timer = setInterval(() => {
        idle += 100;
        if (idle <= patience) return;
        why = 'hangs';
        child.kill('SIGKILL');
      }, 100);
      child.stdio[3].on('data', (chunk) => {
        idle = 0;
        const notes = chunk.trimEnd();
        this.lastNote = notes.slice(notes.lastIndexOf('\n') + 1);
      });
      child.once('message', ({ reply }) => done(reply));
      child.once('exit', (exitCode, signal) => {
        this.#child = null;
        done({ died: why ?? `exit ${exitCode ?? signal}` });
      });
      child.send(message);
    });
  }

  #spawn() {
    const permission = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
    const flags = [permission, '--allow-fs-read=*', '--experimental-vm-modules', '--experimental-import-meta-resolve', '--no-warnings'];
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
