import assert from 'node:assert/strict';
import { Trip } from '../src/trip.js';

describe('Trip', () => {
  it('has a price a seat', () => {
    const trip = new Trip();
    trip.book(147);
    trip.cancel(6);
    trip.accept({ name: 'GROUP', each: 51 });
    assert.equal(trip.price, 7191);
  });
});
