export function* countdown(from) {
  while (from > 0) yield from--;
}

export async function fetched(load, id) {
  const found = await load(id + 1);
  if (!found) throw new RangeError(`no ${id}`);
  return found;
}
