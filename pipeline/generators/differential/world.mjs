/**
 * What a run must not depend on, held still: clock, random numbers, time zone, output, and the process itself.
 *
 * `enter(world)` sets them for one run. A result that differs between two of WORLDS is never asserted.
 */

export const WORLDS = [
  { now: Date.UTC(2024, 4, 15, 10, 20, 30, 456), seed: 1, zone: 'UTC' },
  { now: Date.UTC(2025, 11, 31, 22, 41, 7, 12), seed: 2, zone: 'America/New_York', isRough: true },
  { now: Date.UTC(2013, 1, 3, 4, 59, 59, 999), seed: 3, zone: 'Asia/Kolkata' },
];

export class Exited extends Error {}

let now = 0;
let state = 0;
let ticks = 0;
let isRough = false; // are results of Math that the language leaves to the engine one step off?

const APPROXIMATE = (
  'acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp expm1 hypot log log10 log1p log2 sin sinh tan tanh'
).split(' ');

export function enter({ now: time, seed, zone, isRough: rough = false }) {
  isRough = rough;
  now = time;
  state = seed;
  ticks = seed * 1000;
  if (process.env.TZ !== zone) process.env.TZ = zone;
}

function random() {
  state = (state + 0x6d2b79f5) | 0; // mulberry32
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

export function install() {
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    apply: () => new RealDate(now).toString(),
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length ? args : [now], newTarget === globalThis.Date ? target : newTarget),
    get: (target, key) => (key === 'now' ? () => now : Reflect.get(target, key)),
  });
  RealDate.prototype.constructor = globalThis.Date;
  Math.random = random;
  for (const name of APPROXIMATE) {
    const exact = Math[name];
    // A whole number is what every engine gives; another one may differ in its last bit.
    Math[name] = (...args) => {
      const value = exact(...args);
      return isRough && !Number.isInteger(value) ? value * (1 + Number.EPSILON) : value;
    };
  }
  performance.now = () => ticks++;
  process.hrtime = Object.assign(() => [ticks++, 0], { bigint: () => BigInt(ticks++) });
  process.uptime = () => ticks++;
  const leave = () => {
    throw new Exited('the code under test ends the process');
  };
  Object.assign(process, { exit: leave, abort: leave, reallyExit: leave, kill: leave });
  // Output is dropped here and not by a pipe's reader: 100 MB of it would cost more than the search.
  const swallow = (chunk, encoding, done) => (typeof encoding === 'function' ? encoding : done)?.() ?? true;
  process.stdout.write = swallow;
  process.stderr.write = swallow;
  for (const name of ['log', 'info', 'debug', 'warn', 'error', 'trace', 'dir', 'table']) console[name] = () => {};
  // A rejection that nobody awaits belongs to a run that is over.
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => {});
}
