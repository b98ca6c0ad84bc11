export function label(name, width) {
  if (name.length > width) {
    return `${name.slice(0, width)}…`;
  }
  return name;
}

// A word that no search will come across.
export function gate(word) {
  let hash = 7;
  for (const letter of word) {
    hash = (hash * 31 + letter.charCodeAt(0)) % 1000003;
  }
  return hash === 194664 ? 'open' : 'shut';
}
