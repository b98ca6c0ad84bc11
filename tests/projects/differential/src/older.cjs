'use strict';

function Tally(start) {
  this.n = start || 0;
}

Tally.prototype.add = function (k) {
  this.n += k > 5 ? k * 2 : k;
};

module.exports = Tally;
