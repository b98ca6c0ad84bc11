import assert from 'node:assert/strict';
import { addDays, addWorkdays, contains, dateRange, daysBetween, mergeRanges, overlaps, today } from '../src/dates.js';

describe('dates', () => {
  it('counts days over the end of a month and of a year', () => {
    assert.equal(addDays('2024-02-28', 2), '2024-03-01');
    assert.equal(daysBetween('2023-12-30', '2024-01-02'), 3);
    assert.equal(today(Date.UTC(2024, 4, 17, 23, 59)), '2024-05-17');
    assert.throws(() => addDays('2024-02-30', 1), RangeError);
  });

  it('skips weekends and holidays', () => {
    assert.equal(addWorkdays('2024-05-16', 2), '2024-05-20');
    assert.equal(addWorkdays('2024-04-30', 1, ['2024-05-01']), '2024-05-02');
  });

  it('knows what lies in a range', () => {
    const may = dateRange('2024-05-01', '2024-05-31');
    assert.ok(contains(may, '2024-05-17'));
    assert.ok(!contains(may, '2024-06-02'));
    assert.ok(overlaps(may, dateRange('2024-05-20')));
    assert.ok(!overlaps(may, dateRange('2024-07-01', '2024-07-31')));
    assert.throws(() => dateRange('2024-05-31', '2024-05-01'), RangeError);
  });

  it('merges ranges that touch or overlap', () => {
    const ranges = [
      dateRange('2024-03-10', '2024-03-12'),
      dateRange('2024-03-01', '2024-03-04'),
      dateRange('2024-03-05', '2024-03-07'),
      dateRange('2024-03-02', '2024-03-03'),
    ];
    assert.deepEqual(mergeRanges(ranges), [
      { from: '2024-03-01', to: '2024-03-07' },
      { from: '2024-03-10', to: '2024-03-12' },
    ]);
  });
});
