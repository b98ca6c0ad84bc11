export function excerpt(text, options = {}) {
  const words = text.split(' ');
  const most = options.words ?? 5;
  const shown = words.slice(0, most).join(' ');
  const cased = options.upper ? shown.toUpperCase() : shown;
  return words.length > most ? cased + (options.mark ?? '...') : cased;
}
