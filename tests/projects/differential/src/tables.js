const RATES = { books: 9, food: 9, other: 21 };
const CODE = /^[A-Z]{2}\d+$/;
const SEPARATOR = '-';

export const rateOf = (category) => RATES[category] ?? RATES.other;
export const isCode = (text) => CODE.test(text);
export const joined = (parts) => parts.join(SEPARATOR);
