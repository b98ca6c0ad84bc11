/** Does one of the tags stand for `asked`: the same, or all of it, or all that begins as it does? */
export function speaks(tags, asked) {
  return tags.some((tag) => {
    const hyphen = tag.indexOf('-');
    const language = hyphen === -1 ? tag : tag.slice(0, hyphen);
    return tag === asked || `${tag}/*` === asked || `${language}/*` === asked;
  });
}
