import { expect } from 'chai';
import { mayRisk } from '../../core/swap/trust.js';

const key = { underWay: 0, maxReverts: 2, isCode: false };

describe('what is risked for an owner of signed orders', () => {
  const reverts = (sinceFill: number, swapsSince = 0) => ({ sinceFill, swapsSince });

  it('is as many transactions as may revert, and one of an account with code', () => {
    expect([0, 1, 2].map((n) => mayRisk(reverts(n), key))).to.deep.equal(['send', 'send', 'refuse']);
    expect([0, 1].map((n) => mayRisk(reverts(n), { ...key, isCode: true }))).to.deep.equal(['send', 'refuse']);
  });

  it('counts what is under way', () => {
    expect(mayRisk(reverts(0), { ...key, underWay: 1 })).to.equal('send');
    expect(mayRisk(reverts(1), { ...key, underWay: 1 })).to.equal('wait');
    expect(mayRisk(reverts(2, 1), { ...key, underWay: 1 })).to.equal('wait');
    expect(mayRisk(reverts(0), { ...key, isCode: true, underWay: 1 })).to.equal('wait');
  });

  it('comes back with swaps that the owner paid for, one by one', () => {
    expect(mayRisk(reverts(2, 1), key)).to.equal('send');
    expect(mayRisk(reverts(5, 3), key)).to.equal('send');
    expect(mayRisk(reverts(1, 1), { ...key, isCode: true })).to.equal('refuse');
    expect(mayRisk(reverts(1, 2), { ...key, isCode: true })).to.equal('send');
  });
});
