import assert from 'node:assert/strict';
import { initial, label, share } from '../src/hollow.js';

describe('hollow', () => {
  it('shares', () => assert.equal(share(6, 4), 1.5));
  it('labels', () => assert.equal(label('mass', 'kg'), 'mass (kg)'));
  it('abbreviates', () => assert.equal(initial({ name: 'Ann' }), 'A'));
});
