import { hoard } from './spin.js';

export const pages = (most, gap) => hoard(most, gap + 1);
export const twice = (n) => n * 2;
