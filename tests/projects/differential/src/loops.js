import { until } from './spin.js';

export const rounds = (most, gap) => until(most, gap + 1);
export const half = (n) => n / 2;
