(function (root, factory) {
  if (typeof exports === 'object') module.exports = factory();
  else root.wrapped = factory();
})(this, function () {
  return {
    between: function (n, low, high) {
      return n >= low && n <= high;
    },
  };
});
