import assert from 'node:assert/strict';
import { curve, elapsed, localHour, nextId, shuffledSum, stamp } from '../src/restless.js';

describe('restless', () => {
  it('makes ids', () => assert.ok(nextId('a')));
  it('stamps', () => assert.ok(stamp('a')));
  it('adds', () => assert.ok(shuffledSum(1)));
  it('tells the hour', () => assert.ok(localHour(1)));
  it('bends', () => assert.ok(curve(1)));
  it('measures', () => assert.ok(elapsed(1)));
});
