const framed = (text, settings) => (settings.frame === 'double' ? `==${text}==` : text);

export function title(text, options = {}) {
  return framed(text, { ...options, from: 'title' });
}
