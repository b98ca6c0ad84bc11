'use strict';

const test = require('tape');
const { size } = require('../src/sizes.js');

test('is big above the least', (t) => {
	t.equal(size(5), 'big');
	t.end();
});
