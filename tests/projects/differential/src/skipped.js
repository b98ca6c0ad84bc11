/** How many words of a text are not to be skipped. skip: a word, some, or none. */
export function counted(text, skip) {
  const skipped = {};
  for (const word of [].concat(skip).filter((one) => one !== undefined)) skipped[word] = true;
  return text.split(' ').filter((word) => skipped[word] !== true).length;
}
