/** Why a mutant has no test, and what is known all the same: for people, and for a model that is asked next. */

import { print } from './program.mjs';

const LONGEST = 160; // characters of a program, or of a value
const SHOWN = 2; // programs that get there, and pairs of values
const MANY = 200; // programs that reached a mutant without telling: it may be equivalent

const NO_PIN = {
  moves: 'results that change between runs of the original',
  rough: 'what the language leaves to the engine, as last digits, dates in words and the words of errors',
  elsewhere: 'what is another on another machine',
  leans: 'results that are others once other tests have called the module',
  ends: 'runs that do not end as a test can say',
  used: 'runs in modules that others had used before',
  words: 'what only a wrong input gives, as NaN and errors of the engine',
};

/** { reason, detail } of one mutant. Asks the worker what the cheapest programs that reach it compare there. */
export async function reasonFor(mutant, exploration) {
  const { id } = mutant;
  const count = `${exploration.programs} programs`;
  const whys = [...(exploration.unpinned.get(id) ?? [])];
  if (whys.length) {
    const reason = whys.every((why) => why === 'moves') ? 'unstable' : 'unpinned';
    return { reason, detail: `told apart only by ${whys.map((why) => NO_PIN[why]).join(', and by ')}` };
  }
  if (exploration.avoid.has(id)) return { reason: 'endless', detail: 'ran without end wherever it was reached' };
  const reaching = exploration.visits.get(id) ?? 0;
  if (!reaching && !mutant.static)
    return exploration.late
      ? { reason: 'budget', detail: `not reached in ${count}` }
      : { reason: 'unreachable', detail: `not reached by ${count}; ${nearest(mutant, exploration)}` };
  if (reaching && reaching === exploration.mute.get(id))
    return { reason: 'unpinned', detail: `what the ${reaching} programs give that reach it, no test can write down` };
  const told = mutant.static ? [] : await approach(mutant, exploration);
  const isSpent = exploration.late && reaching < MANY;
  const how = mutant.static ? `the same in ${count}` : `the same in ${reaching} of ${count} that reach it`;
  return { reason: isSpent ? 'budget' : 'never-told-apart', detail: [how, ...told].join('; ') };
}

/** What of the code around a mutant that nothing reached has run. */
function nearest({ line, endLine, file }, { places, lookedAt }) {
  const around = places.filter((p) => p.file === file && p.within.line <= line && p.within.until >= endLine);
  const ran = around.filter((_, i) => lookedAt.has(places.indexOf(around[i])));
  if (!around.length) return 'no call from outside gets there';
  return ran.length ? 'the function around it ran, this part of it never' : 'the function around it never ran';
}

async function approach(mutant, exploration) {
  const there = exploration.entries
    .filter((e) => e.reached.includes(mutant.id))
    .sort((a, b) => a.cost - b.cost)
    .slice(0, SHOWN);
  const told = there.map(({ program, outcome }) => `reached by ${shown(program)}, which gives ${resultOf(outcome)}`);
  if (!there.length || performance.now() > exploration.until) return told; // one run costs next to nothing, a clock that is up all
  const pairs = (await exploration.pairsOf(there[0].program)).filter(
    ({ place }) => exploration.isAtMutant(place, mutant.id),
  );
  return [...told, ...pairs.slice(0, SHOWN).map(({ a, b }) => `compared there: ${text(a)} with ${text(b)}`)];
}

function shown({ steps, observe, wait }) {
  const options = { column: -Infinity, names: (e) => (e.name === 'default' ? stem(e.file) : e.name) };
  const acts = steps.map((s) => `${s.bind ? `${s.bind} = ` : ''}${s.wait ? 'await ' : ''}${print(s.expr, options)}`);
  return cut([...acts, (wait ? 'await ' : '') + print(observe, options)].join(', then '));
}

const stem = (file) => file.replace(/^.*\//, '').replace(/\..*$/, '');

const resultOf = (outcome) =>
  outcome.kind === 'throw' ? `${outcome.name}: ${outcome.message}` : cut(print(outcome.expr, { column: -Infinity }));

const text = (value) => cut(typeof value === 'string' ? JSON.stringify(value) : String(value));
const cut = (s) => (s.length <= LONGEST ? s : `${s.slice(0, LONGEST - 1)}…`);
