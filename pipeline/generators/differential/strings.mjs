/** Strings near a string: a character, a word or a part of it changed; parts are what its separators keep apart. */

const CHARACTERS = ['a', 'B', '0', '9', ' ', '\t', '-', '_', '.', ',', '"', "'", '(', ')', '/', '\\', '\n', 'é'];
const SEPARATORS = [', ', ',', '; ', ';', '&', '|', '=', ':', '/', '.', '--', '-', '_', '@', '\n', ' '];
const WORD = /[\p{L}\p{N}_]+/gu;
const LONGEST = 120;
/** Names that objects have without being given them, and what a missing value is called where it becomes a text. */
const TELLING = ['undefined', 'toString', 'constructor', '__proto__', 'null', 'true', 'false'];

/** random: where chance comes from; strings: those that the tests and the source give. */
export function nearStrings(s, random, strings) {
  return others(s, [...edited(s, random, strings), ...reworded(s, random, strings)]);
}

/** Those of other words, or with other parts. */
export function reshaped(s, random, strings) {
  return others(s, [...reworded(s, random, strings), ...rearranged(s, random, strings), ...rearranged(s, random, strings)]);
}

const others = (s, texts) => [...new Set(texts)].filter((t) => t !== s && t.length < LONGEST);

function edited(s, random, strings) {
  const at = random.below(s.length + 1);
  const c = random.pick(CHARACTERS);
  const other = random.pick(strings);
  const step = (by) => s.replace(/\d+(?!.*\d)/, (d) => String(Math.max(0, Number(d) + by)).padStart(d.length, '0'));
  return [
    ` ${s}`,
    `${s} `,
    s + s,
    s.toUpperCase(),
    s.toLowerCase(),
    s.slice(0, -1),
    s.slice(1),
    c + s,
    s + c,
    s.slice(0, at) + c + s.slice(at),
    s.slice(0, at) + s.slice(at + 1),
    s.slice(0, at) + s.slice(at, at + 1) + s.slice(at),
    s.slice(0, at) + other + s.slice(at),
    `${s} ${other}`,
    other + s,
    s + other,
    step(1),
    step(-1),
    step(10),
    s.replace(/\d+/g, (d) => String(random.below(10 ** d.length)).padStart(d.length, '0')),
    s.slice(0, at),
    s.slice(at),
    [...s].reverse().join(''),
    `x${s}`,
    `${s}1`,
    s.repeat(5),
  ];
}

/** One word of a string in place of another. */
function reworded(s, random, strings) {
  const words = [...s.matchAll(WORD)];
  if (!words.length) return [];
  return [TELLING, random.pick(strings).match(WORD) ?? [], random.pick(strings).match(WORD) ?? []].flatMap((some) => {
    if (!some.length) return [];
    const { 0: word, index } = random.pick(words);
    return [s.slice(0, index) + random.pick(some) + s.slice(index + word.length)];
  });
}

/** A string that lists something, as a list: one part more or less, twice, elsewhere, or out of another such string. */
function rearranged(s, random, strings) {
  const present = SEPARATORS.filter((separator) => s.includes(separator));
  if (!present.length) return [];
  const separator = random.pick(present);
  const parts = s.split(separator);
  const [i, j] = [random.below(parts.length), random.below(parts.length)];
  const lists = strings.filter((other) => other !== s && other.includes(separator));
  const found = [
    [...parts, parts[i]],
    [parts[i], ...parts],
    parts.toSpliced(i, 1),
    parts.with(i, parts[j]).with(j, parts[i]),
    parts.toReversed(),
    parts.with(i, ''),
  ];
  if (lists.length) {
    const theirs = random.pick(random.pick(lists).split(separator));
    found.push(parts.with(i, theirs), parts.toSpliced(j, 0, theirs), [...parts, theirs, parts[i]]);
  }
  return found.map((some) => some.join(separator));
}

/** The parts of a string, by every separator in it. */
export function partsOf(s) {
  const parts = SEPARATORS.filter((separator) => s.includes(separator)).flatMap((separator) => s.split(separator));
  return [...new Set(parts)].filter((part) => part && part !== s);
}
