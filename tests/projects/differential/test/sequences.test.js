import assert from 'node:assert/strict';
import { countdown, fetched } from '../src/sequences.js';

describe('sequences', () => {
  it('are made', async () => {
    assert.ok(countdown(3));
    assert.ok(await fetched((id) => id, 1));
  });
});
