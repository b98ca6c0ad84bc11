import { formatAmount, percentOf, roundCents } from './util/money.js';

const BULK_TIERS = [
  { from: 50, percent: 12 },
  { from: 10, percent: 5 },
];
const TAX_PERCENT = { standard: 20, reduced: 10, books: 0 };
const FREE_SHIPPING_FROM = 5000;
const EXPRESS_SURCHARGE = 590;

/** Percent off for `quantity` pieces of one product. */
export function bulkPercent(quantity) {
  for (const tier of BULK_TIERS) {
    if (quantity >= tier.from) return tier.percent;
  }
  return 0;
}

/** Cents for one line. Clearance prices are final: no bulk discount on top. */
export function lineTotal({ price, quantity, clearance = false }) {
  if (!Number.isInteger(price) || price < 0) {
    throw new RangeError(`price must be a whole number of cents, got ${price}`);
  }
  if (!Number.isInteger(quantity) || quantity < 1) {
    throw new RangeError(`quantity must be a whole number above 0, got ${quantity}`);
  }
  const full = price * quantity;
  return clearance ? full : full - percentOf(full, bulkPercent(quantity));
}

/** What `voucher` takes off `subtotal`, in cents; never more than there is to pay. */
export function voucherDiscount(subtotal, { code, kind, value, minimum = 0, cap = Infinity }) {
  if (subtotal < minimum) {
    throw new Error(`voucher ${code} needs an order of ${formatAmount(minimum)} or more`);
  }
  switch (kind) {
    case 'percent':
      return Math.min(percentOf(subtotal, value), cap);
    case 'fixed':
      return Math.min(value, subtotal);
    default:
      throw new TypeError(`voucher ${code} has an unknown kind: ${kind}`);
  }
}

/** Spreads `amount` over `weights` in proportion; the parts add up to exactly `amount`. */
export function allocate(amount, weights) {
  const total = sum(weights);
  if (total <= 0) return weights.map(() => 0);
  const parts = weights.map((weight) => Math.floor((amount * weight) / total));
  const left = amount - sum(parts);
  const byWeight = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
  for (const index of byWeight.slice(0, left)) parts[index]++;
  return parts;
}

/** The tax that is part of `gross`, in cents. */
export function taxIncluded(gross, category = 'standard') {
  const percent = TAX_PERCENT[category];
  if (percent === undefined) throw new RangeError(`no tax rate for ${category}`);
  return gross - roundCents((gross * 100) / (100 + percent));
}

/** Cents for a parcel of `grams`; the first two kilos are in the base price. */
export function shippingCost({ grams, subtotal, abroad = false, express = false }) {
  if (grams === 0) return 0;
  const extraKilos = Math.ceil(Math.max(0, grams - 2000) / 1000);
  const standard = (abroad ? 1290 : 490) + extraKilos * (abroad ? 250 : 80);
  const free = !abroad && subtotal >= FREE_SHIPPING_FROM && grams <= 20000;
  return (free ? 0 : standard) + (express ? EXPRESS_SURCHARGE : 0);
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
