import assert from 'node:assert/strict';
import { asked, counted, day, folder, known, line, mode, raised, root, wrong } from '../src/foreign.js';

it('gives what is another elsewhere', () => {
  for (const given of [root(1), raised(1), line('a'), folder('a'), known(), mode()]) assert.ok(given);
  assert.ok(wrong() && counted(1) && day() && asked());
});
