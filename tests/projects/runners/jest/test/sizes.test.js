const { size } = require('../src/sizes');

test('is big above the least', () => {
  expect(size(5)).toBe('big');
});
