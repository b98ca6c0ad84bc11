import assert from 'node:assert/strict';
import { slugify, uniqueSlug } from '../src/slug.js';

describe('slugs', () => {
  it('are whole words in lower case, without accents', () => {
    assert.equal(slugify('Crème Brûlée & Co.'), 'creme-brulee-and-co');
    assert.equal(slugify("Große Straße: the butcher's"), 'grosse-strasse-the-butchers');
    assert.equal(slugify('Folding garden table', { maxLength: 16 }), 'folding-garden');
  });

  it('are unique', () => {
    assert.equal(uniqueSlug('Lamp', ['lamp', 'lamp-2']), 'lamp-3');
    assert.equal(uniqueSlug('Search'), 'search-2');
  });
});
