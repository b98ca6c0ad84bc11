import assert from 'node:assert/strict';
import { headline } from '../src/remote.js';

describe('headline', () => {
  it('asks', async () => {
    const title = await headline('a1', async () => ({ status: 200, title: ' News ' }));
    assert.ok(title);
  });
});
