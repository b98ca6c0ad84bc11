export function counter(start) {
  let n = start;
  return {
    next: (by) => (n += by),
    undo() {
      n = start;
    },
  };
}

export const atLeast = (low) => (n) => n >= low;
