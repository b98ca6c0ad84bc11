import { describe, expect, it } from 'vitest';
import { size } from '../src/sizes';

describe('size', () => {
  it('is big above the least', () => {
    expect(size(5)).toBe('big');
  });
});
