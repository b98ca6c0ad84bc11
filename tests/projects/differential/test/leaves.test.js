import assert from 'node:assert/strict';
import { check, run, save } from '../src/leaves.js';

describe('leaves', () => {
  it('checks', () => assert.ok(check(1)));
  it('saves', () => assert.ok(save('a')));
  it('runs', () => assert.ok(run('a')));
});
