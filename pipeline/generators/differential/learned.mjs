/** What the results of programs teach: kills, what is reached, which programs are worth varying, what to run next. */

import { asserts } from './judge.mjs';
import { asking, follow, spying, watching } from './follow.mjs';
import { callsOf, fingerprint, isPresentable } from './program.mjs';

export const VISITS = 4000; // that cost as much as one program
const FAMILIAR = 0.4; // what the cost of a program from the tests counts
const ENTRIES = 2; // programs kept for one way through the code
const MOST_ASIDE = 60; // programs that reach no mutant: more are kept only where nothing goes their way
export const LOOPS = 12; // endless runs before a mutant is left alone

/** Which side of a result is looked at: two programs that go one way may still show different things. */
const lookOf = ({ k, name, fn }) => (k === 'get' ? name : k === 'call' && fn.of?.k === 'global' ? fn.name : k);

export class Learned {
  found = []; // { program, kills }
  unpinned = new Map(); // mutant → why what told it apart is no pin: as the worker's `unsteady` says, and 'words'
  mute = new Map(); // mutant → programs that reached it and gave what no test can assert
  reached = new Set();
  visits = new Map(); // mutant → programs that reached it
  lookedAt = new Set(); // places that some program compared or chose at
  endless = new Map();
  avoid = new Set();
  programs = 0;
  effort = 0;
  // Programs worth varying: { program, outcome, reached, cost, lines: places of what was new, since: effort before it, born, turns,
  // met: mutants approached from it, infected: those looked at with it, near: changes left to try, isTraced }
  entries = [];
  ran = new Set(); // programs with a result, by their fingerprints
  familiar = new Set(); // those of the tests
  next = []; // what a result leads to
  busiest = 0; // visits of the busiest of the tests' programs
  hollow = []; // { program, kills } that only the last resort may assert
  isLastResort = false;
  #signatures = new Map();

  constructor(variations, mutants, places) {
    Object.assign(this, { variations, places });
    this.mutants = new Map(mutants.map((m) => [m.id, m]));
    this.alive = new Set(this.mutants.keys());
    this.poorly = new Set(); // killed, but only by a program nobody would write
  }

  get wanted() {
    return [...this.alive];
  }

  /** What its subclass makes of a result that came nearer to a mutant. */
  aim() {}

  loops(id, weight = 1) {
    const count = (this.endless.get(id) ?? 0) + weight;
    this.endless.set(id, count);
    if (count >= LOOPS) this.avoid.add(id);
  }

  learn(program, { outcome, reached, way, kills, endless, watch, unstable, news, gaps, hits, work }) {
    this.ran.add(fingerprint(program));
    this.busiest = Math.max(this.busiest, hits);
    this.effort += 1 + work / VISITS;
    for (const id of reached) {
      this.reached.add(id);
      this.visits.set(id, (this.visits.get(id) ?? 0) + 1);
      if (!asserts(outcome)) this.mute.set(id, (this.mute.get(id) ?? 0) + 1);
    }
    for (const place of news) this.lookedAt.add(place);
    for (const id of endless) this.loops(id);
    if (outcome.kind === 'hint') return void this.next.push(...this.follow(program, outcome));
    if (!isPresentable(outcome)) {
      this.refuse(kills, unstable || 'words');
      if (kills.length && !unstable && isPresentable(outcome, true) && this.variations.isSane(program))
        this.hollow.push({ program, kills });
      return undefined;
    }
    if (watch !== null) this.next.push(watching(program, watch));
    if (outcome.kind === 'value' && outcome.expr.v === undefined && outcome.expr.k === 'lit')
      this.lookElsewhere(program);
    this.aim(program, outcome, gaps, work);
    this.keep(program, outcome, reached, way, news, work);
    if (!kills.length) return undefined;
    if (unstable) return this.refuse(kills, unstable);
    this.note(program, kills, !this.isLastResort && this.variations.isSane(program));
    return undefined;
  }

  follow(program, outcome) {
    if (outcome.hint !== 'members') return follow(program, outcome);
    const { observe } = program;
    const isKnown = this.variations.classOf(observe, program) && !this.variations.isMade(observe, program);
    if (!isKnown) this.variations.learnMade(program, outcome.members);
    const copies = outcome.hasKeys ? follow(program, { ...outcome, hint: isKnown ? 'record' : 'keys' }) : [];
    // One that gives itself back is looked at under the name that it has.
    const isChained = observe.fn.k === 'get' && observe.fn.of.k === 'var';
    return [...copies, ...(isKnown && isChained ? [] : this.variations.looksAt(program)), ...asking(program, outcome.members)];
  }

  /** Notes why what tells these mutants apart is nothing that a test may assert. */
  refuse(ids, why) {
    for (const id of ids) this.unpinned.set(id, (this.unpinned.get(id) ?? new Set()).add(why));
  }

  note(program, kills, isSane) {
    const gains = kills.filter((id) => this.alive.has(id) && (isSane || !this.poorly.has(id)));
    if (gains.length) this.found.push({ program, kills });
    for (const id of gains) isSane ? this.alive.delete(id) : this.poorly.add(id);
  }

  /** What a call that returns nothing has done shows elsewhere. */
  lookElsewhere(program) {
    const looks = this.variations.otherLooks(program).filter((p) => p.steps.length > program.steps.length);
    if (looks.length) this.next.push(this.variations.random.pick(looks));
  }

  /** Keeps a program for varying, where it goes a way that few others kept go, or compares what none of them does. */
  keep(program, outcome, reached, visited, news, work) {
    // Which mutants that act as their module loads a program would tell, nothing says: some of every kind are kept.
    const calls = reached.length ? '' : callsOf(program);
    const way = `${visited} ${calls} ${outcome.kind} ${lookOf(program.observe)} ${outcome.message?.replace(/\d+|'.*?'|".*?"/g, '') ?? ''}`;
    const count = this.#signatures.get(way) ?? 0;
    if (count >= ENTRIES && (!news.length || (!reached.length && this.entries.length > MOST_ASIDE))) return;
    this.#signatures.set(way, count + 1);
    const familiar = this.familiar.has(fingerprint(program)) ? FAMILIAR : 1;
    const cost = this.variations.cost(program) * familiar + work / VISITS;
    const lines = news.filter((place) => place in this.places).map((place) => this.places[place]);
    if (reached.length) this.next.push(...spying(program, this.variations));
    this.entries.push({
      program,
      outcome,
      reached,
      cost,
      lines,
      since: this.effort,
      born: this.entries.length,
      turns: 0,
      met: new Set(),
      infected: new Set(),
    });
  }
}
