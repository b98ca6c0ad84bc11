import { pairs } from '../src/callbacks.js';

describe('pairs', () => {
  it('does not fail', () => {
    pairs([1, 2, 3], () => {});
  });
});
