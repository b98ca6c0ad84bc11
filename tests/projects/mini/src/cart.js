import { discounted } from './price.js';

export function total(items) {
  let sum = 0;
  for (const { price, count } of items) {
    sum += price * count;
  }
  return discounted(sum);
}

export function isFree(items) {
  return total(items) <= 0;
}
