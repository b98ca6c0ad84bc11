export function openDays(days, { closed = [] } = {}) {
  return days.filter((day) => !closed.some((other) => other === day));
}
