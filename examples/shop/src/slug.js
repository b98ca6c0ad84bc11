const LIGATURES = { ß: 'ss', æ: 'ae', ø: 'o' };
const RESERVED = ['new', 'search'];

/** 'Crème Brûlée & Co.' becomes 'creme-brulee-and-co'. */
export function slugify(title, { maxLength = 60 } = {}) {
  const words = fold(title.toLowerCase())
    .replace(/['’]/g, '')
    .replaceAll('&', ' and ')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  return joinWords(words, maxLength);
}

/** A slug that is neither in `taken` nor a page of the shop: 'lamp', then 'lamp-2', 'lamp-3', ... */
export function uniqueSlug(title, taken = []) {
  const used = new Set([...RESERVED, ...taken]);
  const base = slugify(title, { maxLength: 50 }) || 'product';
  let slug = base;
  for (let n = 2; used.has(slug); n++) slug = `${base}-${n}`;
  return slug;
}

// As many whole words as fit; only a first word that is too long by itself is cut.
function joinWords(words, maxLength) {
  let slug = '';
  for (const word of words) {
    const longer = slug === '' ? word : `${slug}-${word}`;
    if (longer.length > maxLength) break;
    slug = longer;
  }
  return slug || (words[0] ?? '').slice(0, maxLength);
}

function fold(text) {
  return text
    .normalize('NFD')
    .replace(/\p{Mark}+/gu, '')
    .replace(/[ßæø]/g, (letter) => LIGATURES[letter]);
}
