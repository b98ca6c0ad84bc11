/** Cents for a parcel. */
export function postage(grams) {
  if (!Number.isInteger(grams) || grams <= 0) throw new RangeError(`not a weight: ${grams}`);
  if (grams > 2000) return 900;
  return grams > 350 ? 600 : 300;
}

export function isBulk(price, quantity) {
  return price * quantity >= 4750;
}
