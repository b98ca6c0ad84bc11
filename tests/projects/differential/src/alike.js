/** Do two lists hold the same, holes and all? */
export function alike(a, b) {
  if (a.length !== b.length) return false;
  return a.every((item, i) => Object.is(item, b[i])) && Object.keys(a).length === Object.keys(b).length;
}
