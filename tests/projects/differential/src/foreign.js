import { EOL } from 'node:os';
import path from 'node:path';

export const root = (n) => (Math.abs(n) + 2) ** 0.3;
export function raised(n) {
  let value = Math.abs(n) + 2;
  value **= 0.3;
  return value + 1;
}
export const line = (text) => `${text}!${EOL}`;
export const folder = (name) => name + path.sep;
export const known = () => `${Date.parse('May 5, 2020 10:00 GMT') > 0}`;
export const mode = () => `${Boolean(process.env.FIXTURE_MODE)}`;
export function wrong() {
  try {
    return JSON.parse('{ a');
  } catch (error) {
    return `it says: ${error.message}`;
  }
}
export const counted = (n) => `${(Math.abs(n) + 1000.5).toLocaleString()} items`;
export function asked() {
  const seen = [];
  ['c', 'a', 'b'].sort((a, b) => {
    seen.push(`${a} or ${b}`);
    return a < b ? -1 : 1;
  });
  return seen[0];
}
export const day = () => new Date(0).toLocaleDateString(undefined, { weekday: 'long', timeZone: 'UTC' });
