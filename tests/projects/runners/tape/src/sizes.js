exports.size = (n, least = 1) => (n > least ? 'big' : 'small');
