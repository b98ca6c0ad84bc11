import assert from 'node:assert/strict'
import test from 'node:test'
import { size } from '../src/sizes.js'

test('is big above the least', () => {
    assert.equal(size(5), 'big')
})
