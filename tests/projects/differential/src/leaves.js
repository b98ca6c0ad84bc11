import { execSync } from 'node:child_process';
import fs from 'node:fs';

export function check(n) {
  if (n > 9) process.exit(3);
  return n + 1;
}

export function save(name) {
  fs.writeFileSync(`saved-${name}.txt`, 'x');
  return `saved ${name}`;
}

export const run = (name) => execSync(`echo ${name}`).length + 1;
