import assert from 'node:assert/strict';
import { glass, lazy, soon } from '../src/glass.js';

describe('glass', () => {
  it('is clear', () => assert.equal(glass(1), 2));
  it('waits', () => assert.equal(lazy(2).n, 4));
  it('calls back', async () => assert.equal(await new Promise((resolve) => soon(1, resolve)), 1));
});
