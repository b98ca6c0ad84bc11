/** The words that are not to be skipped. skip: a word, some, or none. */
export function kept(words, skip) {
  const skipped = {};
  for (const word of [].concat(skip).filter((one) => one !== undefined)) skipped[word] = true;
  return words.filter((word) => skipped[word] !== true);
}
