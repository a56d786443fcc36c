import { expect } from 'chai';
import { ARMED_MARGIN_MS, cutDeadlineSec, isArmedWithin } from '../../core/cut.js';
import type { MarketSnapshot } from '../../core/types.js';
import { MAKERS } from '../support/markets.js';

const [first, second, third] = MAKERS;

describe('core/cut', () => {
  const NOW_MS = 1_000_000;

  it('leaves out makers whose cancel is due, or due within the margin', () => {
    expect(isArmedWithin(null, NOW_MS)).to.equal(false);
    expect(isArmedWithin(NOW_MS + ARMED_MARGIN_MS, NOW_MS)).to.equal(false);
    expect(isArmedWithin(NOW_MS + ARMED_MARGIN_MS - 1, NOW_MS)).to.equal(true);
    expect(isArmedWithin(NOW_MS - 60_000, NOW_MS)).to.equal(true);
  });

  it('caps the deadline by the earliest armed time of the makers in the cut, and of nobody else', () => {
    const order = (oid: number, maker = first!) => ({ oid, maker, priceTicks: 100n, sizeLots: 1n });
    const volumes = { fillSeq: 0, askVolumeUnits: 0n, bidVolumeUnits: 0n };
    const snapshot: MarketSnapshot = { market: 0, ...volumes, asks: [order(1)], bids: [order(2, second)] };
    const deadline = (armed: Record<string, number>) =>
      cutDeadlineSec(snapshot, 1_000, 12, (maker) => armed[maker] ?? null);
    expect(deadline({})).to.equal(1_012);
    expect(deadline({ [third!]: 1_001_000 })).to.equal(1_012);
    expect(deadline({ [first!]: 1_020_000, [second!]: 1_007_999 })).to.equal(1_007);
    expect(deadline({ [first!]: 1_005_000, [second!]: 1_007_999 })).to.equal(1_005);
  });
});
