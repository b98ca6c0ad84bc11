/** What a text like 'a=1;b=2' says, with what gives the text again. */
export function read(text) {
  const pairs = text.split(';').filter((pair) => pair !== '');
  const said = Object.fromEntries(pairs.map((pair) => pair.split('=')));
  return { ...said, again: () => text };
}
