// Money is a whole number of cents everywhere in the shop.

/** Rounds half a cent away from zero, so that a refund mirrors the charge. */
export function roundCents(value) {
  const rounded = Math.round(Math.abs(value));
  return value < 0 ? -rounded : rounded;
}

export function percentOf(cents, percent) {
  return roundCents((cents * percent) / 100);
}

/** '1,234.5' becomes 123450; null where the text is not an amount. */
export function parseAmount(text) {
  const match = /^(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d{1,2}))?$/.exec(text.trim());
  if (!match) return null;
  const [, whole, fraction = ''] = match;
  return Number(whole.replaceAll(',', '')) * 100 + Number(fraction.padEnd(2, '0'));
}

/** 123450 becomes '1,234.50 EUR'. */
export function formatAmount(cents, currency = 'EUR') {
  const sign = cents < 0 ? '-' : '';
  const digits = String(Math.abs(cents)).padStart(3, '0');
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',');
  return `${sign}${whole}.${digits.slice(-2)} ${currency}`;
}
