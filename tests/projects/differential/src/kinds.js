export const tally = (words) => new Map(words.map((word) => [word, word.length + 1]));

export const odd = (numbers) => new Set([...numbers].filter((n) => n % 2 === 1));

export const later = (date) => new Date(date.getTime() + 1000);

export const bytes = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0) + 1);

export const ending = (suffix) => new RegExp(`${suffix}$`);

export const kind = (isKnown) => (isKnown ? Symbol.for('known') : Symbol.for('unknown'));

export function split(text) {
  const parts = text.split(',');
  parts.rest = parts.length - 1;
  return parts;
}
