import assert from 'node:assert/strict';
import { Account } from '../src/account.js';

describe('Account', () => {
  let account;
  beforeEach(() => {
    account = new Account();
  });
  it('keeps a balance', () => {
    account.deposit(100);
    account.withdraw(30);
    assert.equal(account.balance, 70);
  });
});
