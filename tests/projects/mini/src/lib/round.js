export function cents(amount) {
  return Math.round(amount * 100) / 100;
}
