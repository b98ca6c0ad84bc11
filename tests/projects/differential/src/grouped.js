/** What each group costs: { 'garden/rake': 5, lamp: 3 } is { garden: 5, other: 3 }. */
export function grouped(prices) {
  const groups = {};
  for (const [path, price] of Object.entries(prices)) {
    const slash = path.indexOf('/');
    const group = slash === -1 ? 'other' : path.slice(0, slash);
    groups[group] = (groups[group] ?? 0) + price;
  }
  return groups;
}
