import assert from 'node:assert/strict';
import { folder, known, line, mode, raised, root } from '../src/foreign.js';

it('gives what is another elsewhere', () => {
  for (const given of [root(1), raised(1), line('a'), folder('a'), known(), mode()]) assert.ok(given);
});
