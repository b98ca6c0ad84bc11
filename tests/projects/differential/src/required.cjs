'use strict';

var steps = require('./steps.cjs');

module.exports = function total(items) {
  var sum = 0;
  for (var i = 0; i < items.length; i++) sum += items[i] * steps.size;
  return sum;
};

module.exports.half = (n) => (n > 10 ? n / 2 : n);
