/** Looks for programs on which the original and a mutant differ: near the tests' own first, then further away. */

import { LOOPS, Learned, VISITS } from './learned.mjs';
import { callsOf, fingerprint } from './program.mjs';
import { meetings } from './meetings.mjs';
import { differences, givesMatch, inTurn, witnesses } from './witness.mjs';

// Effort is counted in programs and in visits to mutated places, not in seconds, so that every machine finds the same.
const MANY_VISITS = 20_000; // a program that takes more is left alone, unless the tests' own do
const QUOTA = 1600; // effort spent on one mutant while nothing new is seen in its function, before luck has to do
const MOST_QUOTAS = 3; // for one mutant, whatever is seen
const BATCH = 48; // programs an order
const MEETINGS = 64; // programs from one trace
const HOPS = 6; // programs traced in a row to come nearer to a mutant
const INFECTED = 4; // programs run once more with a mutant on, to see what it makes different
const MOST_NEAR = 220; // of one program
const PARENTS = 3; // programs varied at once
const SOLVED = 8; // programs that get the strings of one pattern
const TIRED = 150; // programs that reach a mutant before it rests
const LEAST = 0.2; // of the batches, for one that thousands reach
const ASKED_MS = 50;
const CHECKED = 4; // programs that give what a mutated check of a type is for
const TYPE_CHECK = /\btypeof\b|\binstanceof\b|\bisArray\b/;

export class Exploration extends Learned {
  #seen = new Set();
  #spent = new Map(); // mutant → effort
  #idle = new Map(); // mutant → effort since something new was seen
  #most; // visits that a program may take, other than on an approach
  #asked = -Infinity; // when time was last looked at: to ask the system costs
  #isLate = false;
  #turn = null; // the mutant that effort is being spent on
  #goal = null; // of an approach: { id, places, gap, program, only }

  /** places: where traced runs compare values, as `traced` numbers them; deadline: in milliseconds of CPU; until: on the clock. */
  constructor(lab, variations, mutants, places, deadline, until) {
    super(variations, mutants, places);
    Object.assign(this, { lab, deadline, until });
  }

  get late() {
    const now = performance.now();
    if (now < this.#asked + ASKED_MS) return this.#isLate;
    this.#asked = now;
    this.#isLate = this.lab.cpu > this.deadline || now > this.until;
    return this.#isLate;
  }

  async search(seeds) {
    for (const seed of seeds) this.familiar.add(fingerprint(seed));
    await this.#run(seeds);
    this.#most = Math.max(MANY_VISITS, 3 * this.busiest);
    await this.#run(this.variations.basics());
    await this.#run(seeds.flatMap((seed) => this.variations.ungiven(seed)));
    await this.#solve();
    await this.#spendQuotas();
    await this.#tryNonsense();
    await this.#lastResort();
  }

  /** Patterns: what they and their mutants treat differently is worked out, and given to programs that get there. */
  async #solve() {
    const known = [...this.variations.seen.values()].map((e) => e.v).filter((v) => typeof v === 'string');
    for (const id of [...this.alive]) {
      const mutant = this.mutants.get(id);
      if (mutant.mutator !== 'Regex' || this.late) continue;
      const strings = differences(mutant.original, mutant.replacement, known);
      this.variations.suggest(strings);
      const there = this.entries.filter((e) => mutant.static || e.reached.includes(id));
      const fit = new Map(there.map((e) => [e, givesMatch(e.program, mutant, this.variations) ? 0 : 1]));
      this.#turn = id;
      there.sort((a, b) => fit.get(a) - fit.get(b) || a.cost - b.cost);
      for (const { program } of inTurn(there, (e) => callsOf(e.program)).slice(0, SOLVED)) {
        if (this.alive.has(id)) await this.#run(witnesses(program, mutant, strings, this.variations));
      }
    }
  }

  async #spendQuotas() {
    for (let id = this.#neediest(); id && !this.late; id = this.#neediest()) {
      const before = this.effort;
      this.#turn = id;
      await this.#approach(id);
      await this.#run(await this.#infect(id));
      if (this.alive.has(id)) await this.#run(await this.#around(id));
      const spent = Math.min(Math.max(this.effort - before, BATCH / 4), QUOTA / 3); // a few slow programs are one turn
      this.#spent.set(id, (this.#spent.get(id) ?? 0) + spent);
      this.#idle.set(id, this.#isNewsFor(id, before) ? 0 : (this.#idle.get(id) ?? 0) + spent);
    }
  }

  async #tryNonsense() {
    for (const entry of [...this.entries].sort((a, b) => a.cost - b.cost).slice(0, 40)) {
      if (this.late || !this.alive.size) break;
      if (entry.reached.some((id) => this.alive.has(id))) await this.#run(this.variations.nonsense(entry.program));
    }
  }

  /** For what nothing more meaningful kills: results that are no number, arguments left out or empty. */
  async #lastResort() {
    this.isLastResort = true;
    for (const { program, kills } of this.hollow.sort(
      (a, b) => this.variations.cost(a.program) - this.variations.cost(b.program),
    ))
      this.note(program, kills, false);
    const sorted = [...this.entries].sort((a, b) => a.cost - b.cost);
    const asked = [...this.alive].filter((id) => TYPE_CHECK.test(this.mutants.get(id).original));
    const there = asked.flatMap((id) => sorted.filter((e) => e.reached.includes(id)).slice(0, CHECKED));
    for (const entry of new Set([...there, ...sorted.slice(0, 40)])) {
      if (this.late) break;
      if (entry.reached.some((id) => this.alive.has(id) && !this.poorly.has(id)))
        await this.#run([...this.variations.hollow(entry.program), ...this.variations.nonsense(entry.program)]);
    }
  }

  /** The mutant alive that the least was spent on; undefined once all have had their share. */
  #neediest() {
    let neediest;
    let least = QUOTA * MOST_QUOTAS;
    for (const id of this.alive) {
      const spent = this.#spent.get(id) ?? 0;
      if (spent < least && (this.#idle.get(id) ?? 0) < QUOTA && !this.avoid.has(id)) [neediest, least] = [id, spent];
    }
    return neediest;
  }

  /** From one program, step by step, to where the values that are compared at a mutant's place meet. */
  async #approach(id) {
    const there = this.entries.filter((e) => e.reached.includes(id) && !e.met.has(id));
    if (!there.length) return;
    const entry = there.reduce((a, b) => (a.cost <= b.cost ? a : b));
    entry.met.add(id);
    const places = new Set([...this.places.keys()].filter((place) => this.#isAt(this.places[place], id)));
    this.#goal = { id, places, gap: Infinity, program: entry.program, only: null };
    for (let hop = 0; hop < HOPS && this.#goal.program && this.alive.has(id); hop++) {
      const { program } = this.#goal;
      this.#goal.program = null; // until one comes nearer
      const gap = ({ a, b }) => (typeof a === 'number' && typeof b === 'number' ? Math.abs(a - b) : Infinity);
      const pairs = (await this.pairsOf(program)).filter((pair) => !pair.same && places.has(pair.place));
      const nearest = Math.min(...pairs.map(gap));
      const programs = this.#meetings(
        program,
        pairs.filter((pair) => gap(pair) === nearest),
        MEETINGS / 2,
      );
      // What came of one that ran before is not known any more; one that nothing came of is not run again.
      for (const id of programs.map(fingerprint)) if (this.ran.has(id)) this.#seen.delete(id);
      await this.#run(programs);
    }
    this.#goal = null;
  }

  /** Notes a program that comes nearer than those before it, without an exception. */
  aim(program, outcome, gaps, work) {
    const goal = this.#goal;
    if (!goal || outcome.kind !== 'value') return;
    for (const [place, gap] of gaps)
      if (goal.places.has(place) && gap < goal.gap) Object.assign(goal, { gap, program });
    if (work > VISITS) goal.only = [goal.id]; // slow programs are run for this mutant alone
  }

  /** From programs in which a mutant makes other values be compared than the original, to ones where that decides. */
  async #infect(id) {
    const isStatic = this.mutants.get(id).static;
    const there = this.entries.filter((e) => (isStatic || e.reached.includes(id)) && !e.infected.has(id));
    there.sort((a, b) => a.cost - b.cost);
    const some = [...there.splice(0, INFECTED / 2), ...this.#sample(there, INFECTED / 2)];
    if (!some.length) return [];
    for (const entry of some) entry.infected.add(id);
    const programs = some.map((e) => e.program);
    const { found } = (await this.lab.order({ order: 'infected', programs, id }, 2)) ?? { found: [] };
    return found.flatMap((pairs, i) => this.#meetings(programs[i], pairs.map((p) => ({ ...p, names: ['', ''] })), MEETINGS / 2));
  }

  /** Programs to try for one mutant, near those that reach it, or near any where none does. */
  async #around(id) {
    const there = this.entries.filter((e) => e.reached.includes(id));
    const entries = (there.length ? there : [...this.entries]).sort((a, b) => a.cost - b.cost);
    if (!entries.length) return [];
    const untraced = entries.find((e) => !e.isTraced);
    if (untraced) untraced.isTraced = true;
    const isOf = ({ place, same }) => !same || this.isAtMutant(place, id);
    const pairs = untraced ? (await this.pairsOf(untraced.program)).filter(isOf) : [];
    // Those that did something new where the mutant is come first, in turn.
    let pioneers = entries.filter((e) => this.#isPioneer(e, id));
    if (!pioneers.length) pioneers = entries.filter((e) => e.lines.length);
    pioneers.sort((a, b) => a.turns - b.turns || b.born - a.born);
    return [
      ...(untraced ? this.#meetings(untraced.program, pairs, MEETINGS) : []),
      ...this.#nearby(pioneers.slice(0, PARENTS - 1), entries, BATCH / 2),
      ...this.#faraway(pioneers.slice(0, PARENTS - 1), entries, BATCH / 2),
    ];
  }

  isAtMutant(place, id) {
    return this.#isAt(this.places[place], id);
  }

  #isAt({ file, line, until }, id) {
    const mutant = this.mutants.get(id);
    return file === mutant.file && line <= mutant.endLine && until >= mutant.line;
  }

  /** What a program compares: [{ a, b, place, names }]. */
  async pairsOf(program) {
    const { pairs } = (await this.lab.order({ order: 'trace', program }, 1)) ?? { pairs: [] };
    // What a timer of an earlier run in the mutated code does comes late, at a place that is none here.
    const here = pairs.filter(({ place }) => place in this.places);
    return here.map((pair) => ({ ...pair, names: this.places[pair.place].names }));
  }

  #meetings(program, pairs, most) {
    const { named, moved, parted } = meetings(program, pairs, this.variations);
    return [...named.slice(0, most), ...this.#sample(moved, most), ...this.#sample(parted, most / 4)].map((make) => make());
  }

  /** Unseen single changes of the pioneers, and of a few of the cheapest. */
  #nearby(pioneers, entries, count) {
    const programs = [];
    const open = entries.filter((e) => e.near?.length !== 0);
    const chosen = [...pioneers];
    while (chosen.length < PARENTS && open.length) chosen.push(this.#favourite(open));
    for (const entry of chosen) {
      entry.near ??= this.#neighbours(entry.program);
      entry.turns++;
      programs.push(...entry.near.splice(0, count / chosen.length).map((make) => make()));
    }
    return programs;
  }

  #neighbours(program) {
    const { acts, likely, shaped, others } = this.variations.near(program);
    const shares = program.steps.length ? [1 / 2, 1 / 4, 1 / 8, 1 / 8] : [1 / 4, 1 / 4, 1 / 4, 1 / 4];
    const found = [acts, likely, shaped, others].flatMap((ways, i) => this.#sample(ways, Math.round(MOST_NEAR * shares[i])));
    return this.#sample(found, MOST_NEAR);
  }

  /** Has a program been kept, since so much effort was spent, for something new in the function of a mutant? */
  #isNewsFor(id, since) {
    return this.entries.some((e) => e.since >= since && e.reached.includes(id) && this.#isPioneer(e, id));
  }

  #isPioneer({ lines }, id) {
    return lines.some(({ file, within }) => this.#isAt({ file, ...within }, id));
  }

  /** One of the sorted entries, the cheaper the likelier. */
  #favourite(entries) {
    return entries[Math.floor(entries.length * this.variations.random.next() ** 2.5)];
  }

  #faraway(pioneers, entries, count) {
    const from = (n) => pioneers[n % PARENTS] ?? this.#favourite(entries);
    return Array.from({ length: count }, (_, n) => this.variations.far(from(n).program));
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
    while (waiting.length || this.next.length) {
      const batch = [...this.next, ...waiting].filter((p) => this.#isNew(p));
      this.next = [];
      waiting = batch.slice(BATCH);
      const now = batch.slice(0, BATCH);
      if (!now.length || this.late) return;
      for (const p of waiting) this.#seen.delete(fingerprint(p));
      await this.#explore(now);
    }
  }

  #isNew(program) {
    const id = fingerprint(program);
    const mayBeAbsurd = this.isLastResort && !this.variations.knowledge.isTyped;
    if (id.length > 1500 || this.#seen.has(id) || (!mayBeAbsurd && this.variations.isAbsurd(program))) return false;
    this.#seen.add(id);
    return true;
  }

  async #explore(programs) {
    this.programs += programs.length;
    const resting = this.#resting();
    await this.lab.explore(programs, {
      alive: this.#goal?.only ?? this.wanted,
      avoid: () => [...this.avoid, ...resting],
      most: this.#goal ? undefined : this.#most,
      onResult: (program, result) => this.learn(program, result),
      onLethal: (id) => this.loops(id, LOOPS / 2),
    });
  }

  /** Mutants that many programs reached and none told: most of them are equivalent, and would cost most of all runs. */
  #resting() {
    if (this.isLastResort) return [];
    const share = (id) => Math.max(LEAST, TIRED / Math.max(TIRED, this.visits.get(id) ?? 0));
    return this.wanted.filter((id) => id !== this.#turn && this.variations.random.next() >= share(id));
  }
}
