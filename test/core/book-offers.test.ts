import { expect } from 'chai';
import fc from 'fast-check';
import { createOffers, MAX_PEAKS, OFFER_MEMORY_MS } from '../../core/book/offers.js';
import { fcOptions } from '../support/fc.js';
import { MAKERS } from '../support/markets.js';

const MAKER = MAKERS[0]!;
const SIDE = 3;

/** What the maker is remembered to have offered, by side. */
function peaksAt(offers: ReturnType<typeof createOffers>, nowMs: number): [number, bigint][] {
  const peaks: [number, bigint][] = [];
  offers.eachPeak(MAKER, nowMs, (sideKey, units) => peaks.push([sideKey, units]));
  return peaks;
}

describe('offers of a moment ago', () => {
  it('remember a bounded number of peaks, and never less than was offered within the memory', () => {
    const step = fc.record({ waitMs: fc.integer({ min: 0, max: 1_500 }), units: fc.bigInt({ min: 1n, max: 1_000n }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const offers = createOffers();
        const taken: { nowMs: number; units: bigint }[] = [];
        let nowMs = 1_000_000;
        for (const { waitMs, units } of steps) {
          nowMs += waitMs;
          offers.takenBack(MAKER, SIDE, units, nowMs);
          taken.push({ nowMs, units });
          expect(offers.peakCount(MAKER, SIDE)).to.be.within(1, MAX_PEAKS);
          const recent = taken.filter((one) => nowMs - one.nowMs < OFFER_MEMORY_MS).map((one) => one.units);
          const most = recent.reduce((a, b) => (a > b ? a : b));
          const [peak] = peaksAt(offers, nowMs);
          expect(peak?.[0]).to.equal(SIDE);
          expect(peak![1] >= most).to.equal(true);
        }
      }),
      fcOptions(200),
    );
  });

  it('keep the bound, and what was offered, when the clock is put back again and again', () => {
    const offers = createOffers();
    for (let step = 0; step < 200; step += 1) {
      const nowMs = 1_000_000 + (step % 2 === 0 ? 9_000 : 0) + 50 * step;
      offers.takenBack(MAKER, SIDE, BigInt(1_000 - step), nowMs);
      expect(offers.peakCount(MAKER, SIDE)).to.be.within(1, MAX_PEAKS);
      expect(peaksAt(offers, nowMs)[0]![1] >= BigInt(1_000 - step)).to.equal(true);
    }
  });

  it('reach the bound when ever less is offered, second by second, and are gone after the memory', () => {
    const offers = createOffers();
    for (let second = 0; second < 60; second += 1) {
      offers.takenBack(MAKER, SIDE, BigInt(1_000 - second), second * 1_000);
      // The end of a grain lengthens its peak.
      offers.takenBack(MAKER, SIDE, BigInt(999 - second), second * 1_000 + 999);
    }
    expect(offers.peakCount(MAKER, SIDE)).to.be.within(MAX_PEAKS - 1, MAX_PEAKS);
    expect(peaksAt(offers, 59_999 + OFFER_MEMORY_MS - 1)).to.have.length(1);
    expect(peaksAt(offers, 59_999 + OFFER_MEMORY_MS)).to.deep.equal([]);
    expect(offers.peakCount(MAKER, SIDE)).to.equal(0);
  });
});
