/** How far pools may move until a trade breaks its bound: within, every trade keeps it, and one step beyond the price it does not. */
import { expect } from 'chai';
import fc from 'fast-check';
import { pairBox, pairSource } from '../../../core/swap/pair-source.js';
import { sqrtPriceAtTick } from '../../../core/swap/pool-math.js';
import { poolBox, poolSource, type PoolState } from '../../../core/swap/pool-source.js';
import { mostOf } from '../../../core/swap/search.js';
import { routeChecks } from '../../../liquidity/checks.js';
import type { Address } from '../../../core/types.js';
import type { StateCheck, VenueTrade } from '../../../liquidity/venue.js';
import { fcOptions } from '../../support/fc.js';

const kinds = fc.constantFrom('sell' as const, 'buy' as const);
/** What may be lost, in 10,000ths. */
const slacks = fc.bigInt({ min: 0n, max: 2_000n });

const bounded = (kind: 'sell' | 'buy', amount: bigint, slackBps: bigint): bigint =>
  kind === 'sell' ? (amount * (10_000n - slackBps) + 9_999n) / 10_000n : (amount * (10_000n + slackBps)) / 10_000n;

const keeps = (kind: 'sell' | 'buy', amount: bigint | null, bound: bigint): boolean =>
  amount !== null && (kind === 'sell' ? amount >= bound : amount <= bound);

describe('how far pools may move until a trade breaks its bound', () => {
  it('is found by halves', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 1_000n), fc.bigInt(0n, 1_000n), fc.bigInt(-1n, 2_001n), (low, more, last) => {
        const expected = last < low ? null : last > low + more ? low + more : last;
        expect(mostOf(low, low + more, (value) => value <= last)).to.equal(expected);
      }),
      fcOptions(200),
    );
  });

  it('holds within a pool of several ranges, and its price is the last one', () => {
    let [found, exact] = [0, 0];
    fc.assert(
      fc.property(
        fc.record({
          kind: kinds,
          zeroForOne: fc.boolean(),
          tick: fc.oneof(fc.integer({ min: -2_000, max: 2_000 }), fc.integer({ min: -100_000, max: 100_000 })),
          widths: fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 3, maxLength: 3 }),
          liquidities: fc.array(fc.bigInt(10n ** 15n, 10n ** 18n), { minLength: 3, maxLength: 3 }),
          units: fc.bigInt(10n ** 9n, 10n ** 16n),
          slackBps: slacks,
          at: fc.bigInt(0n, 1_000n),
          missing: fc.bigInt(0n, 1_000n),
          behind: fc.integer({ min: 0, max: 200 }),
        }),
        ({ kind, zeroForOne, tick, widths, liquidities, units, slackBps, at, missing, behind }) => {
          let end = tick;
          const ranges = liquidities.map((liquidity, i) => {
            end += zeroForOne ? -widths[i]! : widths[i]!;
            return { liquidity, endSqrtPrice: sqrtPriceAtTick(end) };
          });
          const sqrtPrice = sqrtPriceAtTick(tick);
          // The range begins behind the price.
          const nearSqrtPrice = sqrtPriceAtTick(tick + (zeroForOne ? behind : -behind));
          const state: PoolState = { id: 'p', zeroForOne, feePpm: 500n, sqrtPrice, nearSqrtPrice, ranges };
          const traded = (one: PoolState): bigint | null =>
            kind === 'sell' ? poolSource(one).outputFor(units) : poolSource(one).inputFor(units);
          const now = traded(state);
          const bound = now === null ? 1n : bounded(kind, now, slackBps);
          const box = poolBox(state, kind, units, bound);
          expect(box === null, 'what trades keeps what it brings').to.equal(now === null);
          if (box === null) return;
          const moved = (sqrtPrice: bigint, less: bigint): PoolState => ({
            ...state,
            sqrtPrice,
            ranges: ranges.map((one) => ({ ...one, liquidity: one.liquidity > less ? one.liquidity - less : 0n })),
          });
          const most = ranges[0]!.liquidity - box.leastLiquidity;
          const [worstPrice, bestPrice] = zeroForOne
            ? [box.lowSqrtPrice, box.highSqrtPrice]
            : [box.highSqrtPrice, box.lowSqrtPrice];
          const less = box.mostLiquidity === null ? (most * missing) / 1_000n : 0n;
          const price = bestPrice + ((worstPrice - bestPrice) * at) / 1_000n;
          expect(keeps(kind, traded(moved(price, less)), bound), 'within, at a better price or a worse one').to.equal(
            true,
          );
          if (box.mostLiquidity === null) {
            const more = moved(price, -(ranges[0]!.liquidity * missing) / 100n);
            expect(keeps(kind, traded(more), bound), 'with more liquidity').to.equal(true);
          } else {
            const all = [sqrtPrice, sqrtPrice, ranges[0]!.liquidity, ranges[0]!.liquidity];
            expect([worstPrice, bestPrice, box.leastLiquidity, box.mostLiquidity], 'nothing else').to.deep.equal(all);
            exact += 1;
          }
          const next = worstPrice + (zeroForOne ? -1n : 1n);
          const isEnd = zeroForOne ? next <= ranges[0]!.endSqrtPrice : next >= ranges[0]!.endSqrtPrice;
          // Less than what rounding may take is left.
          const nearly = kind === 'sell' ? bound + box.roundingUnits : bound - box.roundingUnits;
          if (!isEnd) expect(keeps(kind, traded(moved(next, most)), nearly), 'beyond').to.equal(false);
          const walked = {
            ...moved(worstPrice, most),
            ranges: moved(worstPrice, most).ranges.slice(0, box.crossed + 1),
          };
          expect(traded(walked), 'over these ranges').not.to.equal(null);
          found += box.crossed > 0 ? 1 : 0;
        },
      ),
      fcOptions(300),
    );
    expect(found, 'some cross a tick').to.be.greaterThan(0);
    expect(exact, 'some may lose nothing').to.be.greaterThan(0);
  });

  it('holds in a pair after trades of others, and not once its reserves are beyond', () => {
    fc.assert(
      fc.property(
        fc.record({
          kind: kinds,
          reserveIn: fc.bigInt(10n ** 6n, 10n ** 24n),
          reserveOut: fc.bigInt(10n ** 6n, 10n ** 24n),
          part: fc.bigInt(2n, 1_000n),
          slackBps: slacks,
          other: fc.bigInt(1n, 10_000n),
        }),
        ({ kind, reserveIn, reserveOut, part, slackBps, other }) => {
          const state = { id: 'p', feePpm: 3_000n, reserveIn, reserveOut };
          const units = (kind === 'sell' ? reserveIn : reserveOut) / part;
          const traded = (one: typeof state): bigint | null =>
            (kind === 'sell' ? pairSource(one)?.outputFor(units) : pairSource(one)?.inputFor(units)) ?? null;
          const now = traded(state);
          if (now === null) return;
          const bound = bounded(kind, now, slackBps);
          const box = pairBox(state, kind, units, bound)!;
          expect(box.mostReserveIn >= reserveIn && box.leastReserveOut <= reserveOut).to.equal(true);
          // Somebody trades ahead of it, in the same direction.
          const input = (reserveIn * other) / 20_000n + 1n;
          const output = pairSource(state)!.outputFor(input) ?? 0n;
          const after = { ...state, reserveIn: reserveIn + input, reserveOut: reserveOut - output };
          if (after.reserveIn <= box.mostReserveIn && after.reserveOut >= box.leastReserveOut)
            expect(keeps(kind, traded(after), bound), 'within').to.equal(true);
          const next = box.mostReserveIn + 1n;
          const beyond = { ...state, reserveIn: next, reserveOut: (reserveIn * reserveOut + next - 1n) / next };
          if (box.mostReserveIn < 2n * reserveIn) expect(keeps(kind, traded(beyond), bound), 'beyond').to.equal(false);
        },
      ),
      fcOptions(300),
    );
  });
});

describe('what must hold for a route', () => {
  const [sellToken, via, buyToken] = ['11', '22', '33'].map((byte): Address => `0x${byte.repeat(20)}`) as [
    Address,
    Address,
    Address,
  ];
  const head = { number: 1, hash: '0x' as const, timestampSec: 0, baseFeeWei: 0n };
  /** Venues that trade two for one, and check nothing but what they are asked. */
  const data = (asked: [VenueTrade, bigint][], refuses = '') => ({
    sources: () => Promise.resolve([]),
    quote: ({ kind, inUnits, outUnits }: VenueTrade) => Promise.resolve(kind === 'sell' ? inUnits / 2n : outUnits * 2n),
    venueOf: (id: string) => ({
      target: sellToken,
      call: () => Promise.reject(new Error('not called')),
      checks: (trade: VenueTrade, boundUnits: bigint): Promise<StateCheck[] | null> => {
        asked.push([trade, boundUnits]);
        return Promise.resolve(
          id === refuses ? null : [{ target: buyToken, word: 0, minimum: boundUnits, maximum: null, data: '0x' }],
        );
      },
    }),
  });

  it('lets parts and legs lose together what the order may', async () => {
    const asked: [VenueTrade, bigint][] = [];
    const parts = [
      { id: 'a', inUnits: 4_000_000n, outUnits: 1n },
      { id: `b>${via}>c`, inUnits: 4_000_000n, outUnits: 1n, via: [1n] },
    ];
    const route = { kind: 'sell' as const, sellToken, buyToken, parts, boundUnits: 2_700_000n };
    expect(await routeChecks(data(asked), route, head, 0)).to.have.length(3);
    // A tenth of 3,000,000 in all: the legs a twentieth each.
    expect(asked.map(([{ id, inUnits, outUnits }, bound]) => [id, inUnits, outUnits, bound])).to.deep.equal([
      ['a', 4_000_000n, 2_000_000n, 1_800_000n],
      ['b', 4_000_000n, 2_000_000n, 1_900_001n],
      ['c', 2_000_000n, 1_000_000n, 950_001n],
    ]);
    expect(await routeChecks(data([]), { ...route, boundUnits: 3_000_001n }, head, 0), 'not now').to.equal(null);
    expect(await routeChecks(data([], 'c'), route, head, 0), 'a venue can not say').to.equal(null);
  });

  it('lets the first leg of a purchase cost more, within what its call may take', async () => {
    const asked: [VenueTrade, bigint][] = [];
    const parts = [{ id: `b>${via}>c`, inUnits: 4_100_000n, outUnits: 1_000_000n, via: [2_000_000n] }];
    const route = { kind: 'buy' as const, sellToken, buyToken, parts, boundUnits: 4_400_000n };
    expect(await routeChecks(data(asked), route, head, 0)).to.have.length(2);
    expect(asked.map(([{ id, inUnits, outUnits }, bound]) => [id, inUnits, outUnits, bound])).to.deep.equal([
      ['b', 4_000_000n, 2_000_000n, 4_400_000n],
      ['c', 2_000_000n, 1_000_000n, 2_000_000n],
    ]);
    expect(await routeChecks(data([]), { ...route, boundUnits: 3_999_999n }, head, 0)).to.equal(null);
  });
});
