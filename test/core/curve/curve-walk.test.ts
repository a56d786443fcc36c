import { expect } from 'chai';
import fc from 'fast-check';
import {
  AMOUNT_LIMIT,
  consumedUnits,
  costOf,
  depthUnits,
  quoteCeil,
  quoteFloor,
  remaining,
  trade,
  type CurveSides,
  type TradeMode,
} from '../../../core/curve/walk.js';
import type { Segment } from '../../../core/types.js';
import { fcOptions } from '../../support/fc.js';

type Grid = Parameters<typeof trade>[0];

const MODES: readonly TradeMode[] = ['buyExactIn', 'buyExactOut', 'sellExactIn', 'sellExactOut'];
const fresh = { askUnits: 0n, bidUnits: 0n };

/** Grids from "one quote unit buys many base units" to "one base unit costs many quote units". */
const gridArbitrary = fc.record({
  lotUnits: fc.constantFrom(1n, 10n, 1000n, 10n ** 14n),
  tickLotUnits: fc.constantFrom(1n, 3n, 7n, 1000n, 10n ** 12n),
});
const sideArbitrary = (ask: boolean, maxUnits: bigint): fc.Arbitrary<Segment[]> =>
  fc
    .array(fc.record({ lengthUnits: fc.bigInt(1n, maxUnits), subticks: fc.bigInt(1n, 100_000n) }), { maxLength: 8 })
    .map((side) => side.sort((a, b) => (a.subticks < b.subticks === ask ? -1 : 1)));
const curveArbitrary = (maxUnits: bigint): fc.Arbitrary<CurveSides> =>
  fc.record({ asks: sideArbitrary(true, maxUnits), bids: sideArbitrary(false, maxUnits) });

/** The price of every single base unit, in subticks, best first. */
const unitPrices = (side: readonly Segment[]): bigint[] =>
  side.flatMap(({ lengthUnits, subticks }) => Array.from({ length: Number(lengthUnits) }, () => subticks));

/** One trade after the other, each on what the ones before left; null when one of them is refused. */
function tradeParts(grid: Grid, curve: CurveSides, start: bigint, mode: TradeMode, amounts: readonly bigint[]) {
  let consumed = start;
  let base = 0n;
  let quote = 0n;
  for (const amount of amounts) {
    const part = trade(grid, curve, { askUnits: consumed, bidUnits: consumed }, mode, amount);
    if (part === null) return null;
    consumed += part.baseUnits;
    base += part.baseUnits;
    quote += part.quoteUnits;
  }
  return { base, quote };
}

describe('core/curve/walk', () => {
  it('agrees with counting unit by unit', () => {
    const amounts = fc.oneof(fc.bigInt(0n, 200n), fc.bigInt(0n, 10n ** 9n));
    fc.assert(
      fc.property(gridArbitrary, curveArbitrary(20n), fc.bigInt(0n, 60n), amounts, (grid, curve, consumed, amount) => {
        const divisor = grid.lotUnits * 256n;
        const state = { askUnits: consumed, bidUnits: consumed };
        for (const mode of MODES) {
          const buy = mode.startsWith('buy');
          const prices = unitPrices(buy ? curve.asks : curve.bids).slice(Number(consumed));
          // Quote units of the first n units, rounded in the vault's favour.
          let sum = 0n;
          const quotes = [0n, ...prices.map((price) => (sum += price))].map(
            (cost) => (cost * grid.tickLotUnits + (buy ? divisor - 1n : 0n)) / divisor,
          );
          const last = quotes.at(-1)!;
          let expected: { baseUnits: bigint; quoteUnits: bigint } | null = null;
          if (mode === 'buyExactOut' || mode === 'sellExactIn') {
            const quoteUnits = quotes[Number(amount)];
            if (amount > 0n && quoteUnits !== undefined && quoteUnits > 0n)
              expected = { baseUnits: amount, quoteUnits };
          } else if (amount > 0n) {
            // Above the whole price, a buy still fills while the excess does not reach one subtick of one base unit.
            const withinPrice = amount <= last || (buy && amount * divisor < (sum + 1n) * grid.tickLotUnits);
            const base = buy ? quotes.findLastIndex((q) => q <= amount) : quotes.findIndex((q) => q >= amount);
            if (withinPrice && base > 0) expected = { baseUnits: BigInt(base), quoteUnits: amount };
          }
          expect(trade(grid, curve, state, mode, amount), mode).to.deep.equal(expected);
        }
      }),
      fcOptions(400),
    );
  });

  it('never gains by splitting, in any mode', () => {
    const parts = fc.array(fc.bigInt(1n, 10n ** 9n), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(
        gridArbitrary,
        curveArbitrary(10n ** 9n),
        fc.bigInt(0n, 10n ** 9n),
        parts,
        (grid, curve, start, amounts) => {
          for (const mode of MODES) {
            const whole = amounts.reduce((sum, part) => sum + part, 0n);
            const atOnce = trade(grid, curve, { askUnits: start, bidUnits: start }, mode, whole);
            const parts = tradeParts(grid, curve, start, mode, amounts);
            if (parts === null) continue;
            if (atOnce === null) {
              // What parts of an exact-in buy leave unspent may together pay for more base than there is.
              expect(mode, 'parts fit but the whole does not').to.equal('buyExactIn');
              continue;
            }
            const { base, quote } = parts;
            if (mode === 'buyExactOut') expect(quote >= atOnce.quoteUnits).to.equal(true);
            if (mode === 'buyExactIn') expect(base <= atOnce.baseUnits).to.equal(true);
            if (mode === 'sellExactIn') expect(quote <= atOnce.quoteUnits).to.equal(true);
            if (mode === 'sellExactOut') expect(base >= atOnce.baseUnits).to.equal(true);
          }
        },
      ),
      fcOptions(400),
    );
  });

  it('inverts: exact-in base is the most that is paid for, exact-out base the least that yields', () => {
    fc.assert(
      fc.property(
        gridArbitrary,
        curveArbitrary(10n ** 20n),
        fc.bigInt(0n, 10n ** 19n),
        fc.bigInt(1n, 10n ** 24n),
        (grid, curve, consumed, amount) => {
          const state = { askUnits: consumed, bidUnits: consumed };
          const bought = trade(grid, curve, state, 'buyExactIn', amount);
          if (bought !== null) {
            const asks = remaining(curve.asks, consumed);
            expect(quoteCeil(grid, costOf(asks, bought.baseUnits)!) <= amount).to.equal(true);
            const more = costOf(asks, bought.baseUnits + 1n);
            if (more !== null) expect(quoteCeil(grid, more) > amount).to.equal(true);
          }
          const sold = trade(grid, curve, state, 'sellExactOut', amount);
          if (sold !== null) {
            const bids = remaining(curve.bids, consumed);
            expect(quoteFloor(grid, costOf(bids, sold.baseUnits)!) >= amount).to.equal(true);
            expect(quoteFloor(grid, costOf(bids, sold.baseUnits - 1n)!) < amount).to.equal(true);
          }
        },
      ),
      fcOptions(300),
    );
  });

  it('rises with the amount', () => {
    fc.assert(
      fc.property(
        gridArbitrary,
        curveArbitrary(10n ** 9n),
        fc.bigInt(1n, 10n ** 12n),
        fc.bigInt(0n, 10n ** 9n),
        (grid, curve, amount, more) => {
          for (const mode of MODES) {
            const small = trade(grid, curve, fresh, mode, amount);
            const large = trade(grid, curve, fresh, mode, amount + more);
            if (small === null || large === null) continue;
            expect(large.baseUnits >= small.baseUnits && large.quoteUnits >= small.quoteUnits, mode).to.equal(true);
          }
        },
      ),
      fcOptions(200),
    );
  });

  it('sells exactly the depth: the whole price buys everything, more is refused', () => {
    fc.assert(
      fc.property(gridArbitrary, curveArbitrary(10n ** 12n), (grid, curve) => {
        const depth = depthUnits(curve.asks);
        if (depth === 0n) {
          for (const mode of MODES.slice(0, 2)) expect(trade(grid, curve, fresh, mode, 1n)).to.equal(null);
          return;
        }
        const price = quoteCeil(grid, costOf(curve.asks, depth)!);
        expect(trade(grid, curve, fresh, 'buyExactOut', depth)).to.deep.equal({ baseUnits: depth, quoteUnits: price });
        expect(trade(grid, curve, fresh, 'buyExactIn', price)).to.deep.equal({ baseUnits: depth, quoteUnits: price });
        expect(trade(grid, curve, fresh, 'buyExactOut', depth + 1n)).to.equal(null);
        const subtickOfUnit = grid.tickLotUnits / (grid.lotUnits * 256n);
        expect(trade(grid, curve, fresh, 'buyExactIn', price + subtickOfUnit + 1n)).to.equal(null);
        expect(trade(grid, curve, { askUnits: depth, bidUnits: 0n }, 'buyExactOut', 1n)).to.equal(null);
      }),
      fcOptions(200),
    );
  });

  it('refuses amounts at the limit and zero outputs', () => {
    const grid = { lotUnits: 1n, tickLotUnits: 1n };
    const huge = [{ lengthUnits: 2n ** 101n, subticks: 256n }];
    const curve = { asks: huge, bids: huge };
    for (const mode of MODES) {
      expect(trade(grid, curve, fresh, mode, 0n), mode).to.equal(null);
      expect(trade(grid, curve, fresh, mode, AMOUNT_LIMIT), mode).to.equal(null);
      expect(trade(grid, curve, fresh, mode, AMOUNT_LIMIT - 1n), mode).to.not.equal(null);
    }
    const cheap = { asks: huge, bids: [{ lengthUnits: 10n, subticks: 1n }] };
    expect(trade(grid, cheap, fresh, 'sellExactIn', 10n), 'floor of 10/256').to.equal(null);
    const dear = { asks: [{ lengthUnits: 10n, subticks: 1000n }], bids: huge };
    expect(trade(grid, dear, fresh, 'buyExactIn', 3n), 'a unit costs 4').to.equal(null);
    expect(trade(grid, dear, fresh, 'buyExactIn', 4n)).to.deep.equal({ baseUnits: 1n, quoteUnits: 4n });
  });

  it('counts what is consumed modulo 2^92, so that a snapshot ahead of the chain offers nothing', () => {
    expect(consumedUnits(7n, 5n)).to.equal(2n);
    expect(consumedUnits(2n ** 92n + 7n, 7n)).to.equal(0n);
    expect(consumedUnits(2n ** 96n - 1n + 3n, 2n ** 92n - 1n)).to.equal(3n);
    expect(consumedUnits(5n, 7n)).to.equal(2n ** 92n - 2n);
    const curve = { asks: [{ lengthUnits: 10n ** 20n, subticks: 1n }], bids: [] };
    const state = { askUnits: consumedUnits(5n, 7n), bidUnits: 0n };
    expect(trade({ lotUnits: 1n, tickLotUnits: 1n }, curve, state, 'buyExactOut', 1n)).to.equal(null);
  });
});
