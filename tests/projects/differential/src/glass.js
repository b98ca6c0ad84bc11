const blind = { ownKeys: () => 3 };

export const glass = (n) => (n > 2 ? new Proxy({}, blind) : n + 1);
export const lazy = (n) => ({ n: n * 2, get rest() { throw new Error(`${n}`); } });
export const soon = (n, done) => { Promise.resolve().then(() => done(n)); };
