'use strict';

module.exports = {
  total: 0,
  add(amount) {
    this.total += amount > 9 ? amount - 1 : amount;
  },
};
