import assert from 'node:assert/strict';
import { seat, ticket } from '../src/counter.js';

it('gives tickets', () => {
  assert.match(ticket('a'), /^a/);
});

it('gives seats', () => {
  assert.equal(seat('A', 3).length, 1);
});
