export function until(most, step) {
  let at = 0;
  while (at < most) at += step;
  return at;
}

export function hoard(most, step) {
  const kept = [];
  for (let at = 0; at < most; at += step) kept.push(new Array(1e5).fill(at));
  return kept.length;
}
