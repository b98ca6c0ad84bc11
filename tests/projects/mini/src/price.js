import { cents } from './lib/round.js';

export function gross(net, rate = 0.2) {
  if (net < 0) {
    throw new RangeError('net must not be negative');
  }
  return cents(net * (1 + rate));
}

export function discounted(total) {
  return total > 100 ? cents(total * 0.9) : total;
}
