/**
 * What a run must not depend on, held still: clock, random numbers, time zone, machine, output, and the process itself.
 *
 * `enter(world)` sets them for one run. A result that differs between two of WORLDS is never asserted; one that was made
 * with a look at a clock, at chance or at the machine, not where it differs in one of RARER either.
 */

import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import path from 'node:path';

import { installElsewhere } from './elsewhere.mjs';

export const WORLDS = [
  { now: Date.UTC(2024, 4, 15, 10, 20, 30, 456), seed: 1, zone: 'UTC' },
  { now: Date.UTC(2025, 11, 31, 22, 41, 7, 12), seed: 2, zone: 'America/New_York', isRough: true, isElsewhere: true },
  { now: Date.UTC(2013, 1, 3, 4, 59, 59, 999), seed: 3, zone: 'Asia/Kolkata' },
];

const LEAST = 1 / 2 ** 32;

/**
 * All weekdays, months and quarters of a day, years that are far off, chance at its ends, zones whose day is the next or the
 * one before and whose clocks are put forward at one, two and midnight: what shows on one day of a week shows here.
 */
export const RARER = [
  ['2026-01-03T00:00:01Z', 'Pacific/Kiritimati', 0],
  ['2027-02-28T05:30:00Z', 'Pacific/Pago_Pago', 1 - LEAST],
  ['2028-02-29T13:59:59Z', 'Europe/Berlin'],
  ['2029-03-12T19:00:00Z', 'Europe/London', LEAST],
  ['2030-04-30T23:30:00Z', 'Africa/Cairo'],
  ['2034-06-21T09:15:00Z', 'Australia/Lord_Howe', 1 / 128],
  ['2041-07-04T16:45:00Z', 'Pacific/Auckland', 1 - 1 / 128],
  ['2055-08-06T21:05:00Z', 'America/St_Johns'],
  ['2017-09-15T03:20:00Z', 'Australia/Sydney', 1 / 16],
  ['1999-10-31T11:11:11Z', 'Asia/Tehran', 1 - 1 / 16],
  ['2010-11-11T18:00:00Z', 'America/Los_Angeles'],
  ['2099-12-25T07:07:07Z', 'UTC'],
].map(([time, zone, chance], i) => ({ now: Date.parse(time), seed: 4 + i, zone, chance }));

export class Exited extends Error {}

/** Has the code looked at what differs between worlds since `forget`? */
export let hasLooked = false;

export function forget() {
  hasLooked = false;
}

let now = 0;
let chance; // what all random numbers are
let isElsewhere = false; // on another machine?
let state = 0;
let ticks = 0;
let isRough = false; // is this another engine: what the language leaves to it comes out otherwise?
const variables = process.env;
const given = new Set(); // names of those that the code has set itself

export const RAISED = '__raised__'; // a global function that a loaded module has for **: (base, exponent) → power
export const RAISED_AT = '__raisedAt__'; // and for **=: (object, key, exponent) → power
const APPROXIMATE = (
  'acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp expm1 hypot log log10 log1p log2 pow sin sinh tan tanh'
).split(' ');
const MACHINE = (
  'arch availableParallelism cpus freemem homedir hostname loadavg machine networkInterfaces platform release tmpdir ' +
  'totalmem type uptime userInfo version'
).split(' '); // of node:os
const OWN = {
  arch: 'riscv64',
  execPath: '/other/node',
  pid: 7,
  platform: 'win32',
  ppid: 6,
  version: 'v98.7.6',
  versions: { node: '98.7.6', v8: '98.7' },
}; // of the process, elsewhere

const ROUGH = 1 + 8 * Number.EPSILON; // in the last bits, and in more than what is added next rounds off

/** A whole number is what every engine gives, as long as its last bit is a whole; another may differ in its last bits. */
const approximate = (value) =>
  isRough && typeof value === 'number' && !Number.isSafeInteger(value) ? value * ROUGH : value;

export function enter({ now: time, seed, zone, chance: fixed, isRough: rough = false, isElsewhere: elsewhere = false }) {
  isRough = rough;
  isElsewhere = elsewhere;
  chance = fixed;
  now = time;
  state = seed;
  ticks = seed * 1000;
  if (variables.TZ !== zone) variables.TZ = zone;
}

function time() {
  hasLooked = true;
  return now;
}

/** The same of another machine. */
function other(value) {
  if (typeof value === 'string') return `${value}-other`;
  if (typeof value === 'number') return value + 1;
  return Array.isArray(value) ? [...value, ...value] : {};
}

function random() {
  hasLooked = true;
  if (chance !== undefined) return chance;
  state = (state + 0x6d2b79f5) | 0; // mulberry32
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

// Texts that every engine has to read: https://tc39.es/ecma262/#sec-date.parse
const DATE_TEXT =
  /^([+-]\d{6}|\d{4})(-\d\d){0,2}(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$|^[A-Z][a-z]{2},? [A-Z\d][a-z\d]+ [A-Z\d][a-z\d]+ \d{4,} \d\d:\d\d:\d\d GMT/;
const isRead = (text) => !isRough || typeof text !== 'string' || DATE_TEXT.test(text);

/** The variables of the environment, each another elsewhere, but for what the code has set itself. */
const environment = new Proxy(variables, {
  get: (target, name) => {
    const here = target[name];
    const isOther = isElsewhere && typeof name === 'string' && name !== 'TZ' && !given.has(name);
    return isOther && name !== 'toJSON' ? `${here ?? 'set'}-other` : here;
  },
  has: (target, name) => name in target || (isElsewhere && !given.has(name)),
  set: (target, name, value) => {
    given.add(name);
    target[name] = value;
    return true;
  },
  deleteProperty: (target, name) => {
    given.add(name);
    return delete target[name];
  },
  defineProperty: (target, name, descriptor) => {
    given.add(name);
    return Reflect.defineProperty(target, name, descriptor);
  },
});

/** Has a constant of a module of Node.js another value elsewhere. */
function vary(module, name, there) {
  const here = module[name];
  Object.defineProperty(module, name, { get: () => (isElsewhere ? there : here), configurable: true, enumerable: true });
}

/** node:path, whose own object is frozen in a process of few permissions. `path.posix` is that everywhere. */
export const paths = { ...path };
for (const name of ['sep', 'delimiter']) vary(paths, name, path.win32[name]);
for (const name of ['join', 'normalize', 'relative', 'resolve'])
  paths[name] = (...args) => (isElsewhere ? path.win32 : path)[name](...args);

export function install() {
  const RealDate = Date;
  const parse = (text) => (time(), isRead(text) ? RealDate.parse(text) : NaN);
  globalThis.Date = new Proxy(RealDate, {
    apply: () => new RealDate(time()).toString(),
    construct: (target, args, newTarget) => {
      const moment = time(); // of one that is given the zone may matter
      const read = args.length !== 1 || isRead(args[0]) ? args : [NaN];
      return Reflect.construct(target, args.length ? read : [moment], newTarget === globalThis.Date ? target : newTarget);
    },
    get: (target, key) => (key === 'now' ? time : key === 'parse' ? parse : Reflect.get(target, key)),
  });
  RealDate.prototype.constructor = globalThis.Date;
  Math.random = random;
  for (const name of APPROXIMATE) {
    const exact = Math[name];
    Math[name] = (...args) => approximate(exact(...args));
  }
  globalThis[RAISED] = (a, b) => approximate(a ** b);
  globalThis[RAISED_AT] = (object, key, b) => (object[key] = approximate(object[key] ** b));
  performance.now = () => ticks++;
  process.hrtime = Object.assign(() => [ticks++, 0], { bigint: () => BigInt(ticks++) });
  process.uptime = () => ticks++;
  const leave = () => {
    throw new Exited('the code under test ends the process');
  };
  Object.assign(process, { exit: leave, abort: leave, reallyExit: leave, kill: leave });
  for (const [name, there] of Object.entries(OWN)) vary(process, name, there);
  process.env = environment;
  vary(os, 'EOL', '\r\n');
  const cwd = process.cwd();
  process.cwd = () => (isElsewhere ? '/proc/self/cwd' : cwd); // the same folder under another name
  installElsewhere({
    get isRough() {
      return isRough;
    },
    get isElsewhere() {
      return isElsewhere;
    },
  });
  for (const name of MACHINE) {
    const here = os[name];
    os[name] = (...args) => (isElsewhere ? other(here(...args)) : here(...args));
  }
  syncBuiltinESMExports();
  // Output is dropped here and not by a pipe's reader: 100 MB of it would cost more than the search.
  const swallow = (chunk, encoding, done) => (typeof encoding === 'function' ? encoding : done)?.() ?? true;
  process.stdout.write = swallow;
  process.stderr.write = swallow;
  for (const name of ['log', 'info', 'debug', 'warn', 'error', 'trace', 'dir', 'table']) console[name] = () => {};
  // A rejection that nobody awaits belongs to a run that is over.
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => {});
}
