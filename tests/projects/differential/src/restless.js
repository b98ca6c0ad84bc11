import { cpus } from 'node:os';

const loaded = Date.now();
let count = 0;

export const nextId = (prefix) => `${prefix}${++count + Math.random()}`;
export const stamp = (text) => `${text} ${Date.now() + 1}`;
export const shuffledSum = (n) => n + Math.floor(Math.random() * 1000) + 1;
export const localHour = (n) => `${new Date().getHours() + n}`;
export const elapsed = (n) => performance.now() + n;
export const curve = (n) => Math.sin(Math.abs(n) + 0.5);
export const door = () => (new Date().getDay() === 6 ? 'closed' : 'open');
export const midday = (n) => `${new Date(2024, 2, 31, 2 + (n & 0)).getHours()}`;
export const machine = () => `${process.version} ${process.platform} ${cpus().length} ${process.cwd()}`;
export const since = (n) => `${loaded + n}`;
export const rarely = () => (Math.random() < 0.01 ? 'won' : 'lost');
export const grown = (n) => Math.exp((Math.abs(n) % 50) + 45);
