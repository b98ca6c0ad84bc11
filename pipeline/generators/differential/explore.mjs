/** Looks for programs on which the original and a mutant differ: near the tests' own first, then further away. */

import { fingerprint, get, local, spread } from './program.mjs';

const BATCH = 48;
const ENOUGH = 1_500; // programs without a new kill, and ...
const ENOUGH_EACH = 120; // ... for each mutant still alive, before the search ends
const MOST = 20_000; // programs
const MOST_NEAR = 220; // of one program
const ENTRIES = 4; // programs kept for one way through the code
const LOOPS = 12; // endless runs before a mutant is left alone

export class Exploration {
  found = []; // { program, outcome, kills, sane }
  unstable = new Set(); // mutants that only differ where the original itself does not keep still
  reached = new Set();
  endless = new Map();
  avoid = new Set();
  programs = 0;
  entries = []; // programs worth varying: { program, reached, cost, near }
  #seen = new Set();
  #signatures = new Map();
  #next = [];
  #lastKill = 0;

  constructor(lab, variations, ids, deadline) {
    Object.assign(this, { lab, variations, deadline });
    this.alive = new Set(ids);
    this.poorly = new Set(); // killed, but only by a program nobody would write
  }

  get wanted() {
    return [...this.alive];
  }

  get late() {
    return performance.now() > this.deadline;
  }

  get #tired() {
    const patience = Math.min(ENOUGH + ENOUGH_EACH * this.alive.size, ENOUGH * 3);
    return this.late || this.programs > MOST || this.programs - this.#lastKill > patience || !this.alive.size;
  }

  async search(seeds) {
    await this.#run(seeds);
    await this.#run(this.variations.basics());
    while (!this.#tired && (this.entries.length || this.#next.length)) {
      const before = this.programs;
      await this.#run([...this.#nearby(BATCH / 2), ...this.#faraway(BATCH / 2)]);
      if (this.programs === before && this.#idle++ > 50) break;
    }
    for (const entry of [...this.entries].sort((a, b) => a.cost - b.cost).slice(0, 40)) {
      if (this.late || !this.alive.size) break;
      if (entry.reached.some((id) => this.alive.has(id))) await this.#run(this.variations.nonsense(entry.program));
    }
  }

  #idle = 0;

  /** Unseen single changes of the cheapest programs that reach a mutant still alive. */
  #nearby(count) {
    const programs = [];
    const entries = this.#useful().sort((a, b) => a.cost - b.cost);
    for (const entry of entries) {
      entry.near ??= this.#sample(this.variations.near(entry.program), MOST_NEAR);
      programs.push(...entry.near.splice(0, count - programs.length));
      if (programs.length >= count) break;
    }
    return programs;
  }

  #useful() {
    const useful = this.entries.filter((e) => e.reached.some((id) => this.alive.has(id)));
    return useful.length ? useful : [...this.entries];
  }

  #sample(programs, most) {
    const { random } = this.variations;
    while (programs.length > most) programs.splice(random.below(programs.length), 1);
    return programs;
  }

  #faraway(count) {
    const { random } = this.variations;
    const ids = this.wanted;
    return Array.from({ length: count }, () => {
      const id = random.pick(ids);
      const there = this.entries.filter((e) => e.reached.includes(id));
      const entry = random.pick(there.length ? there : this.entries);
      return this.variations.far(entry.program);
    });
  }

  async #run(programs) {
    let waiting = programs;
    while (waiting.length || this.#next.length) {
      const batch = [...this.#next, ...waiting].filter((p) => this.#isNew(p));
      this.#next = [];
      waiting = batch.slice(BATCH);
      const now = batch.slice(0, BATCH);
      if (!now.length || this.late) return;
      for (const p of waiting) this.#seen.delete(fingerprint(p));
      await this.#explore(now);
    }
  }

  #isNew(program) {
    const id = fingerprint(program);
    if (id.length > 1500 || this.#seen.has(id) || this.variations.isAbsurd(program)) return false;
    this.#seen.add(id);
    return true;
  }

  async #explore(programs) {
    this.programs += programs.length;
    const order = { order: 'explore', programs, alive: this.wanted, avoid: [...this.avoid] };
    const { results } = await this.lab.order(order, (note) => this.#lethal(note));
    results.forEach((result, i) => this.#learn(programs[i], result));
  }

  #lethal(note) {
    const id = note.split(' ')[1];
    if (id && id !== '-') this.#loops(id, LOOPS / 2);
  }

  #loops(id, weight = 1) {
    const count = (this.endless.get(id) ?? 0) + weight;
    this.endless.set(id, count);
    if (count >= LOOPS) this.avoid.add(id);
  }

  #learn(program, { outcome, reached, kills, endless, watch, unstable }) {
    for (const id of reached) this.reached.add(id);
    for (const id of endless) this.#loops(id);
    if (outcome.kind === 'hint') return void this.#next.push(...follow(program, outcome));
    if (outcome.kind === 'bad' || outcome.native) return undefined;
    if (watch !== null) this.#next.push(watching(program, watch));
    this.#keep(program, outcome, reached);
    if (!kills.length) return undefined;
    if (unstable) return kills.forEach((id) => this.unstable.add(id));
    const sane = this.variations.isSane(program, outcome);
    const news = sane ? kills : kills.filter((id) => !this.poorly.has(id));
    if (news.length) this.found.push({ program, outcome, kills, sane });
    for (const id of news) (sane ? this.alive.delete(id) : this.poorly.add(id));
    if (news.length) this.#lastKill = this.programs;
    return undefined;
  }

  /** Keeps a program for varying, where it goes a way through the code that few others kept go. */
  #keep(program, outcome, reached) {
    if (!reached.length && this.entries.length > 60) return;
    const way = `${reached.join()} ${outcome.kind} ${outcome.message?.replace(/\d+|'.*?'|".*?"/g, '') ?? ''}`;
    const count = this.#signatures.get(way) ?? 0;
    if (count >= ENTRIES) return;
    this.#signatures.set(way, count + 1);
    this.entries.push({ program, reached, cost: this.variations.cost(program), near: null });
  }
}

/** The program that a hint of the worker's leads to. */
export function follow(program, { hint, at }) {
  switch (hint) {
    case 'wait':
      return [{ ...program, wait: true }];
    case 'cut':
      return [{ steps: program.steps.slice(0, at), observe: program.steps[at].expr, wait: program.steps[at].wait }];
    case 'message':
      return program.wait ? [] : [{ ...program, observe: get(program.observe, 'message') }];
    default: {
      if (!program.wait) return [{ ...program, observe: spread(program.observe, hint) }];
      const steps = [...program.steps, { bind: 'result', expr: program.observe, wait: true }];
      return program.steps.some((s) => s.bind === 'result') ? [] : [{ steps, observe: spread(local('result'), hint), wait: false }];
    }
  }
}

/** The program that looks at what its call did to argument `at`. */
export function watching(program, at) {
  const name = 'given';
  const { observe } = program;
  const steps = [
    ...program.steps,
    { bind: name, expr: observe.args[at], wait: false },
    { bind: null, expr: { ...observe, args: observe.args.with(at, local(name)) }, wait: program.wait },
  ];
  return { steps, observe: local(name), wait: false };
}
