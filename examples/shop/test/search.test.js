import assert from 'node:assert/strict';
import { QueryError, parseQuery, search, tokenize } from '../src/search.js';

const products = [
  { title: 'Desk lamp', price: 4000, tags: ['Office', 'Light'] },
  { title: 'Table lamp', price: 6500, tags: ['Light'], description: 'Warm light for the living room' },
  { title: 'Garden chair', price: 8900, tags: ['Garden furniture'] },
  { title: 'Gift card', price: 2500 },
];
const titles = (query) => search(products, query).map(({ title }) => title);

describe('search', () => {
  it('splits a query into tokens', () => {
    assert.deepEqual(tokenize('t-shirt -"long sleeve"'), [
      { body: 't-shirt', excluded: false, at: 0 },
      { body: '"long sleeve"', excluded: true, at: 8 },
    ]);
  });

  it('finds by words, phrases, tags and prices', () => {
    assert.deepEqual(titles('LAMP'), ['Desk lamp', 'Table lamp']);
    assert.deepEqual(titles('lamp -desk'), ['Table lamp']);
    assert.deepEqual(titles('"Living room"'), ['Table lamp']);
    assert.deepEqual(titles('tag:garden-furniture'), ['Garden chair']);
    assert.deepEqual(titles('tag:light price:<50'), ['Desk lamp']);
    assert.deepEqual(titles('price:>70'), ['Garden chair']);
    assert.deepEqual(titles('price:25'), ['Gift card']);
  });

  it('says what is wrong with a query', () => {
    assert.throws(() => parseQuery('lamp "desk'), { name: 'QueryError', message: 'a " is missing (column 6)' });
    assert.throws(() => parseQuery('price:cheap'), QueryError);
  });
});
