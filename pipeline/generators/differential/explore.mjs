/** Looks for programs on which the original and a mutant differ: near the tests' own first, then further away. */

import { fingerprint, get, isPresentable, local, spread } from './program.mjs';
import { meetings } from './trace.mjs';

// Effort is counted in programs and in visits to mutated places, not in seconds, so that every machine finds the same.
const VISITS = 500; // that cost as much as one program
const QUOTA = 600; // effort spent on one mutant, before the search leaves it to luck
const BATCH = 48; // programs an order
const MEETINGS = 64; // programs from one trace
const MOST_NEAR = 220; // of one program
const PARENTS = 3; // programs varied at once
const FAMILIAR = 0.4; // what the cost of a program from the tests counts
const ENTRIES = 2; // programs kept for one way through the code
const LOOPS = 12; // endless runs before a mutant is left alone

export class Exploration {
  found = []; // { program, outcome, kills, sane }
  unstable = new Set(); // mutants that only differ where the original itself does not keep still
  reached = new Set();
  endless = new Map();
  avoid = new Set();
  programs = 0;
  effort = 0;
  entries = []; // programs worth varying: { program, reached, cost, near }
  #seen = new Set();
  #signatures = new Map();
  #familiar = new Set();
  #next = [];
  #spent = new Map(); // mutant → effort

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

  async search(seeds) {
    for (const seed of seeds) this.#familiar.add(fingerprint(seed));
    await this.#run(seeds);
    await this.#run(this.variations.basics());
    await this.#spendQuotas();
    await this.#tryNonsense();
  }

  async #spendQuotas() {
    for (let id = this.#neediest(); id && !this.late; id = this.#neediest()) {
      const before = this.effort;
      await this.#run(await this.#around(id));
      this.#spent.set(id, (this.#spent.get(id) ?? 0) + Math.max(this.effort - before, BATCH / 4));
    }
  }

  async #tryNonsense() {
    for (const entry of [...this.entries].sort((a, b) => a.cost - b.cost).slice(0, 40)) {
      if (this.late || !this.alive.size) break;
      if (entry.reached.some((id) => this.alive.has(id))) await this.#run(this.variations.nonsense(entry.program));
    }
  }

  /** The mutant alive that the least was spent on; undefined once all have had their share. */
  #neediest() {
    let neediest;
    let least = QUOTA;
    for (const id of this.alive) {
      const spent = this.#spent.get(id) ?? 0;
      if (spent < least && !this.avoid.has(id)) [neediest, least] = [id, spent];
    }
    return neediest;
  }

  /** Programs to try for one mutant, near those that reach it, or near any where none does. */
  async #around(id) {
    const there = this.entries.filter((e) => e.reached.includes(id));
    const entries = (there.length ? there : [...this.entries]).sort((a, b) => a.cost - b.cost);
    if (!entries.length) return [];
    return [
      ...(await this.#meetings(entries)),
      ...this.#nearby(entries, BATCH / 2),
      ...this.#faraway(entries, BATCH / 2),
    ];
  }

  /** Programs in which values that the cheapest untraced program compares would meet. */
  async #meetings(entries) {
    const entry = entries.find((e) => !e.traced);
    if (!entry) return [];
    entry.traced = true;
    const { pairs } = (await this.lab.order({ order: 'trace', program: entry.program }, 1)) ?? { pairs: [] };
    return this.#sample(meetings(entry.program, pairs, this.variations), MEETINGS).map((make) => make());
  }

  /** Unseen single changes of a few of the cheapest. */
  #nearby(entries, count) {
    const programs = [];
    const open = entries.filter((e) => e.near?.length !== 0);
    for (let n = 0; n < PARENTS && open.length; n++) {
      const entry = this.#favourite(open);
      entry.near ??= this.#neighbours(entry.program);
      programs.push(...entry.near.splice(0, count / PARENTS).map((make) => make()));
    }
    return programs;
  }

  #neighbours(program) {
    const { acts, likely, others } = this.variations.near(program);
    const found = [acts, likely, others].flatMap((ways) => this.#sample(ways, MOST_NEAR / 3));
    return this.#sample(found, MOST_NEAR);
  }

  /** One of the sorted entries, the cheaper the likelier. */
  #favourite(entries) {
    return entries[Math.floor(entries.length * this.variations.random.next() ** 2.5)];
  }

  #faraway(entries, count) {
    return Array.from({ length: count }, () => this.variations.far(this.#favourite(entries).program));
  }

  /** Up to `most` of `items`, by chance. */
  #sample(items, most) {
    const { random } = this.variations;
    for (let i = 0; i < Math.min(most, items.length); i++) {
      const j = i + random.below(items.length - i);
      [items[i], items[j]] = [items[j], items[i]];
    }
    return items.slice(0, most);
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
    await this.lab.explore(programs, {
      alive: this.wanted,
      avoid: [...this.avoid],
      onResult: (program, result) => this.#learn(program, result),
      onLethal: (id) => this.#loops(id, LOOPS / 2),
    });
  }

  #loops(id, weight = 1) {
    const count = (this.endless.get(id) ?? 0) + weight;
    this.endless.set(id, count);
    if (count >= LOOPS) this.avoid.add(id);
  }

  #learn(program, { outcome, reached, way, kills, endless, watch, unstable, work }) {
    this.effort += 1 + work / VISITS;
    for (const id of reached) this.reached.add(id);
    for (const id of endless) this.#loops(id);
    if (outcome.kind === 'hint') return void this.#next.push(...follow(program, outcome));
    if (!isPresentable(outcome)) return undefined;
    if (watch !== null) this.#next.push(watching(program, watch));
    this.#keep(program, outcome, reached, way, work);
    if (!kills.length) return undefined;
    if (unstable) return kills.forEach((id) => this.unstable.add(id));
    const sane = this.variations.isSane(program);
    const news = sane ? kills : kills.filter((id) => !this.poorly.has(id));
    if (news.length) this.found.push({ program, outcome, kills, sane });
    for (const id of news) sane ? this.alive.delete(id) : this.poorly.add(id);
    return undefined;
  }

  /** Keeps a program for varying, where it goes a way through the code that few others kept go. */
  #keep(program, outcome, reached, visited, work) {
    if (!reached.length && this.entries.length > 60) return;
    const way = `${visited} ${outcome.kind} ${outcome.message?.replace(/\d+|'.*?'|".*?"/g, '') ?? ''}`;
    const count = this.#signatures.get(way) ?? 0;
    if (count >= ENTRIES) return;
    this.#signatures.set(way, count + 1);
    const familiar = this.#familiar.has(fingerprint(program)) ? FAMILIAR : 1;
    const cost = this.variations.cost(program) * familiar + work / VISITS;
    this.entries.push({ program, reached, cost, near: null, traced: false });
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
      return program.steps.some((s) => s.bind === 'result')
        ? []
        : [{ steps, observe: spread(local('result'), hint), wait: false }];
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
