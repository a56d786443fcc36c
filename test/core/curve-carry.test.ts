import { expect } from 'chai';
import { exactKnots, MAX_EXACT_KNOTS, raisedConsumption } from '../../core/curve/carry.js';
import { WETH_USDC } from '../support/markets.js';

const LOT = WETH_USDC.lotUnits;
const segments = [
  [10n, 100n],
  [5n, 101n],
  [20n, 103n],
].map(([lots = 0n, ticks = 0n]) => ({ lengthUnits: lots * LOT, subticks: ticks * 256n }));

describe('core/curve/carry', () => {
  it('raises to the end of the segment, but not within the exact ones', () => {
    const raised = (exact: number, units: bigint) => raisedConsumption(segments, exact, units);
    const ends = [10n * LOT, 15n * LOT, 35n * LOT] as const;
    for (const exact of [0, 1, 2, 3, 15]) {
      expect(raised(exact, 0n)).to.equal(0n);
      ends.forEach((end, i) => {
        const first = (ends[i - 1] ?? 0n) + 1n;
        for (const units of [first, (first + end) / 2n, end - 1n]) {
          expect(raised(exact, units), `${units} of ${exact}`).to.equal(i < exact ? units : end);
        }
        expect(raised(exact, end)).to.equal(end);
      });
      for (const beyond of [ends[2] + 1n, 2n ** 92n - 1n]) expect(raised(exact, beyond)).to.equal(beyond);
      expect(raisedConsumption([], exact, 7n)).to.equal(7n);
    }
  });

  it('counts the leading segments that equal the book, whichever way they divide its levels', () => {
    const levels = [
      { priceTicks: 100n, lots: 10n },
      { priceTicks: 101n, lots: 5n },
      { priceTicks: 102n, lots: 10n },
      { priceTicks: 104n, lots: 10n },
    ];
    expect(exactKnots(WETH_USDC, levels, segments)).to.equal(2);
    expect(exactKnots(WETH_USDC, levels, [])).to.equal(0);
    const cut = (...lots: bigint[]) => lots.map((count) => ({ lengthUnits: count * LOT, subticks: 25_600n }));
    expect(exactKnots(WETH_USDC, levels, cut(4n, 6n))).to.equal(2);
    expect(exactKnots(WETH_USDC, levels, cut(4n, 7n))).to.equal(1);
    expect(exactKnots(WETH_USDC, levels, [{ lengthUnits: 10n * LOT, subticks: 25_601n }])).to.equal(0);
    // A chord over two levels meets the book at its end alone.
    expect(exactKnots(WETH_USDC, levels, [{ lengthUnits: 20n * LOT, subticks: 101n * 256n }])).to.equal(0);
    const many = [{ priceTicks: 100n, lots: 20n }];
    expect(exactKnots(WETH_USDC, many, cut(...Array<bigint>(20).fill(1n)))).to.equal(MAX_EXACT_KNOTS);
    // Deeper than the book: the check refuses it, and nothing beyond counts as exact.
    expect(exactKnots(WETH_USDC, many, cut(10n, 11n))).to.equal(1);
  });
});
