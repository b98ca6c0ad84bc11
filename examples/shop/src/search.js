import { slugify } from './slug.js';
import { parseAmount } from './util/money.js';

// A query is a list of terms that must all hold: word, "a phrase", tag:sale, price:<20; a - before a term excludes.

export class QueryError extends Error {
  constructor(message, at) {
    super(`${message} (column ${at + 1})`);
    this.name = 'QueryError';
    this.at = at;
  }
}

export function tokenize(text) {
  const tokens = text.matchAll(/(-?)("[^"]*"?|[^\s"]+)/g);
  return [...tokens].map(({ 1: sign, 2: body, index }) => ({ body, excluded: sign === '-', at: index }));
}

export function parseQuery(text) {
  return tokenize(text).map(({ body, excluded, at }) => ({ ...parseTerm(body, at), excluded }));
}

/** The products that `query` finds, in their own order; an empty query finds none. */
export function search(products, query) {
  const terms = parseQuery(query);
  if (terms.length === 0) return [];
  return products.filter((product) => terms.every((term) => holds(term, product) !== term.excluded));
}

function parseTerm(body, at) {
  if (body.startsWith('"')) {
    if (body.length === 1 || !body.endsWith('"')) throw new QueryError('a " is missing', at);
    return { kind: 'text', text: body.slice(1, -1).toLowerCase() };
  }
  const [, field, value] = /^(\w+):(.+)$/.exec(body) ?? [];
  switch (field) {
    case undefined:
      return { kind: 'text', text: body.toLowerCase() };
    case 'tag':
      return { kind: 'tag', slug: slugify(value) };
    case 'price':
      return { kind: 'price', ...parsePrices(value, at) };
    default:
      throw new QueryError(`there is no field ${field}`, at);
  }
}

function parsePrices(value, at) {
  const [, sign, amount] = /^([<>]?)(.*)$/.exec(value);
  const cents = parseAmount(amount);
  if (cents === null) throw new QueryError(`${amount} is not a price`, at);
  if (sign === '<') return { min: 0, max: cents - 1 };
  if (sign === '>') return { min: cents + 1, max: Infinity };
  return { min: cents, max: cents };
}

function holds(term, { title, description = '', tags, price }) {
  if (term.kind === 'tag') return tags?.some((tag) => slugify(tag) === term.slug) ?? false;
  if (term.kind === 'price') return price >= term.min && price <= term.max;
  return `${title}\n${description}`.toLowerCase().includes(term.text);
}
