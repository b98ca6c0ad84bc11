exports.size = 3;
