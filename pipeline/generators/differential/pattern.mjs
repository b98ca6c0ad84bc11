/** Strings that a regular expression matches, and near ones: what a person would try. Understands the common syntax. */

const MOST = 24;

/** Up to MOST strings that match, shortest first; [] where the pattern uses what is not understood. */
export function samples(pattern, flags) {
  let found;
  try {
    const reader = new Reader(pattern);
    found = reader.alternatives();
    if (reader.at < pattern.length) return [];
  } catch {
    return [];
  }
  const expression = new RegExp(pattern, flags.replace(/[gy]/g, ''));
  const matching = [...new Set(found)].filter((text) => expression.test(text));
  return matching.sort((a, b) => a.length - b.length || (a < b ? -1 : 1)).slice(0, MOST);
}

const CLASSES = {
  d: ['0', '7'],
  w: ['a', 'Z', '5', '_'],
  s: [' ', '\t'],
  D: ['x', '-'],
  W: ['-', ' '],
  S: ['x', '0', '-'],
  b: [''],
  B: [''],
};
const ESCAPES = { n: '\n', t: '\t', r: '\r', f: '\f', v: '\v', 0: '\0' };
const PROBES = ['a', 'Z', '0', '9', ' ', '-', '_', '.', 'é', '"', '(', '/'];

class Reader {
  at = 0;

  constructor(pattern) {
    this.pattern = pattern;
  }

  get peek() {
    return this.pattern[this.at];
  }

  alternatives() {
    const found = [...this.sequence()];
    while (this.peek === '|') {
      this.at++;
      found.push(...this.sequence());
    }
    return found;
  }

  sequence() {
    let found = [''];
    while (this.at < this.pattern.length && this.peek !== '|' && this.peek !== ')') {
      const choices = this.quantified(this.atom());
      // Vary one part at a time: the first choice for the rest.
      const [first] = found;
      found = [...found.map((text) => text + choices[0]), ...choices.slice(1).map((choice) => first + choice)].slice(
        0,
        MOST * 2,
      );
    }
    return found;
  }

  atom() {
    const c = this.pattern[this.at++];
    if (c === '^' || c === '$') return [''];
    if (c === '.') return ['x', ' ', '0'];
    if (c === '[') return this.set();
    if (c === '(') return this.group();
    if (c === '\\') return this.escape();
    return [c];
  }

  group() {
    const assertion = /^\?(<?[=!])/.exec(this.pattern.slice(this.at));
    const head = /^\?(:|<?[=!]|<\w+>)/.exec(this.pattern.slice(this.at));
    if (head) this.at += head[0].length;
    const inner = this.alternatives();
    if (this.pattern[this.at++] !== ')') throw new SyntaxError('unclosed group');
    if (!assertion) return inner;
    return assertion[1] === '=' ? inner : [''];
  }

  escape() {
    const c = this.pattern[this.at++];
    if (c === 'u' || c === 'x') {
      const hex = /^\{([\da-f]+)\}|^[\da-f]+/i.exec(
        this.pattern.slice(this.at, this.at + (c === 'u' ? (this.peek === '{' ? 9 : 4) : 2)),
      );
      this.at += hex[0].length;
      return [String.fromCodePoint(Number.parseInt(hex[1] ?? hex[0], 16))];
    }
    if (c === 'p' || c === 'P' || c === 'k' || /[1-9]/.test(c)) throw new SyntaxError('not understood');
    return CLASSES[c] ?? [ESCAPES[c] ?? c];
  }

  set() {
    const from = this.at - 1;
    if (this.peek === '^') this.at++;
    while (this.peek !== ']') {
      if (this.peek === undefined) throw new SyntaxError('unclosed class');
      this.at += this.peek === '\\' ? 2 : 1;
    }
    this.at++;
    const text = this.pattern.slice(from, this.at);
    const expression = new RegExp(text);
    const own = [...text.slice(1, -1).replace(/\\[a-zA-Z]/g, '')].filter((c) => expression.test(c));
    const choices = [...new Set([...PROBES.filter((c) => expression.test(c)), ...own])];
    if (!choices.length)
      for (let c = 32; c < 0x400 && choices.length < 2; c++)
        if (expression.test(String.fromCharCode(c))) choices.push(String.fromCharCode(c));
    return choices.length ? choices.slice(0, 8) : [''];
  }

  quantified(choices) {
    const quantifier = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(this.pattern.slice(this.at));
    if (!quantifier) return choices;
    this.at += quantifier[0].length;
    const [, sign, low, comma, high] = quantifier;
    const least = sign ? (sign === '+' ? 1 : 0) : Number(low);
    const most = sign ? (sign === '?' ? 1 : 2) : high ? Number(high) : comma ? Number(low) + 1 : Number(low);
    if (most > 40) throw new SyntaxError('not understood');
    const usual = Math.max(least, Math.min(1, most));
    const counts = [...new Set([usual, least, most])];
    return [...choices.map((c) => c.repeat(usual)), ...counts.slice(1).map((n) => choices[0].repeat(n))];
  }
}
