// A date is 'YYYY-MM-DD', without time or zone; a range includes both ends, and one whose `to` is null never ends.

const DAY = 24 * 60 * 60 * 1000;
const SUNDAY = 0;
const SATURDAY = 6;

export function today(now = Date.now()) {
  return fromMillis(now);
}

export function addDays(date, days) {
  return fromMillis(toMillis(date) + days * DAY);
}

/** Negative where `to` is before `from`. */
export function daysBetween(from, to) {
  return (toMillis(to) - toMillis(from)) / DAY;
}

export function isWorkday(date, holidays = []) {
  const weekday = new Date(toMillis(date)).getUTCDay();
  return weekday !== SUNDAY && weekday !== SATURDAY && !holidays.includes(date);
}

/** The date `days` workdays after `date`; with 0 days, `date` itself. */
export function addWorkdays(date, days, holidays = []) {
  let result = date;
  let left = days;
  while (left > 0) {
    result = addDays(result, 1);
    if (isWorkday(result, holidays)) left -= 1;
    if (daysBetween(date, result) > 366) throw new RangeError(`${days} workdays take more than a year`);
  }
  return result;
}

export function dateRange(from, to = null) {
  toMillis(from);
  if (to !== null && daysBetween(from, to) < 0) {
    throw new RangeError(`a range cannot end before it starts: ${from} to ${to}`);
  }
  return { from, to };
}

export function contains(range, date) {
  return date >= range.from && (range.to === null || date <= range.to);
}

export function overlaps(a, b) {
  return contains(a, b.from) || contains(b, a.from);
}

/** The same days in as few ranges as possible, earliest first. */
export function mergeRanges(ranges) {
  const merged = [];
  for (const range of [...ranges].sort((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = merged.at(-1);
    if (last && (last.to === null || range.from <= addDays(last.to, 1))) {
      if (last.to !== null && (range.to === null || range.to > last.to)) last.to = range.to;
    } else {
      merged.push({ ...range });
    }
  }
  return merged;
}

function toMillis(date) {
  const millis = /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(date) : NaN;
  // Some engines roll February 30 over into March.
  if (Number.isNaN(millis) || fromMillis(millis) !== date) throw new RangeError(`not a date: ${date}`);
  return millis;
}

function fromMillis(millis) {
  return new Date(millis).toISOString().slice(0, 10);
}
