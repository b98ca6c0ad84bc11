let count = 0;

export const nextId = (prefix) => `${prefix}${++count + Math.random()}`;
export const stamp = (text) => `${text} ${Date.now() + 1}`;
export const shuffledSum = (n) => n + Math.floor(Math.random() * 1000) + 1;
export const localHour = (n) => `${new Date().getHours() + n}`;
export const elapsed = (n) => performance.now() + n;
export const curve = (n) => Math.sin(Math.abs(n) + 0.5);
