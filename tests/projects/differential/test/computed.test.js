import { describe, expect, test } from 'vitest';
import { grade } from '../src/computed.js';

const answers = Array.from('abcdefghij', (letter, i) => letter.repeat(i) + [...'xyz'].reverse().join(''));

describe('grade', () => {
  test.each(answers.filter((answer) => answer.length > 8))('%s', (answer) => {
    expect(typeof grade(answer)).toBe('string');
  });
});
