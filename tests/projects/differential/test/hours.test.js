import assert from 'node:assert/strict';
import { openDays } from '../src/hours.js';

describe('hours', () => {
  it('has every day', () => assert.deepEqual(openDays(['Monday', 'Friday']), ['Monday', 'Friday']));
});
