/** A pair that trades at equal pools whose ranges are short, and at our own curve, which is worse and has no ranges: trades cross ticks of each pool. */
import { sqrtPriceAtTick } from '../../../core/swap/pool-math.js';
import { poolSource } from '../../../core/swap/pool-source.js';
import { feeUnits } from '../../../core/swap/pricing.js';
import { OWN, type Source } from '../../../core/swap/source.js';
import { wayOf, type WayOf } from '../../../core/swap/trust.js';
import type { Address } from '../../../core/types.js';
import type { SentQuestion } from '../../../liquidity/checked-plan.js';
import type { Head } from '../../../liquidity/eth.js';
import type { MarketData } from '../../../liquidity/market-data.js';

export const CROSSING_TOKENS = ['11', '22'].map((byte): Address => `0x${byte.repeat(20)}`) as [Address, Address];
export const CROSSING_HEAD: Head = { number: 1, hash: '0x', timestampSec: 0, baseFeeWei: 0n };
/** What is sold: some seven ranges of one pool. */
export const CROSSING_UNITS = 10n ** 21n;
const RANGE_TICKS = 10;
const RANGES = 60;

/** As new accounts stand that have traded nothing. */
export const newcomersWay: WayOf = wayOf(
  { dealings: [], isCode: false, maxReverts: 2, newAccountGas: 94_000n, canCheck: true },
  0n,
);

export function crossingPools(count: number): Source[] {
  const pool = (i: number): Source =>
    poolSource({
      ...{ id: `uniswap-v3:${i}`, zeroForOne: true, feePpm: 500n, sqrtPrice: sqrtPriceAtTick(0) },
      ranges: Array.from({ length: RANGES }, (_, range) => ({
        liquidity: CROSSING_UNITS * 285n,
        endSqrtPrice: sqrtPriceAtTick(-RANGE_TICKS * (range + 1)),
      })),
    });
  const { crossed: _, ...own } = poolSource({
    ...{ id: OWN, zeroForOne: true, feePpm: 0n, sqrtPrice: sqrtPriceAtTick(-300) },
    ranges: [{ liquidity: CROSSING_UNITS * 10n ** 6n, endSqrtPrice: sqrtPriceAtTick(-400) }],
  });
  return [own, ...Array.from({ length: count }, (_one, i) => pool(i))];
}

/** Market data of these sources alone, which are quoted as they say themselves. */
export const marketOf = (sources: readonly Source[]): MarketData =>
  ({
    sources: () => Promise.resolve([...sources]),
    paths: () => Promise.resolve([]),
    quote: ({ id, kind, inUnits, outUnits }) => {
      const source = sources.find((one) => one.id === id);
      return Promise.resolve((kind === 'sell' ? source?.outputFor(inUnits) : source?.inputFor(outUnits)) ?? null);
    },
  }) as Partial<MarketData> as MarketData;

/** A sale of a twentieth of a per cent of slippage. */
export const crossingSale = (way: WayOf): SentQuestion => ({
  ...{ kind: 'sell', sellToken: CROSSING_TOKENS[0], buyToken: CROSSING_TOKENS[1], amountUnits: CROSSING_UNITS },
  ...{ preference: 'auto', toleranceBps: 10, way },
  feeOf: (ids) => feeUnits(BigInt(ids.length), { weiPerGas: 1n, units: 1n, wei: 1n }, 0),
  boundOf: ({ outUnits }) => (outUnits * 9_995n) / 10_000n,
});
