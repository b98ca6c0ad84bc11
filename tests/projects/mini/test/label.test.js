import assert from 'node:assert/strict';
import { gate, label } from '../src/label.js';

describe('label', () => {
  it('keeps a short name', () => {
    assert.equal(label('abc', 5), 'abc');
  });

  it('is shut', () => {
    assert.equal(gate('x'), 'shut');
  });
});
