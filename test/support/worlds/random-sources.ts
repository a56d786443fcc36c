/** Random places to trade one pair at, around one price, for tests of routing. */
import { curveSource } from '../../../core/swap/curve-source.js';
import { squareRoot } from '../../../core/swap/pool-math.js';
import { poolSource, type PoolRange } from '../../../core/swap/pool-source.js';
import { pathSource } from '../../../core/swap/paths.js';
import type { Leg, Source } from '../../../core/swap/source.js';
import type { Address, Market, Segment } from '../../../core/types.js';
import { SUBTICKS_PER_TICK } from '../../../core/market.js';
import { WETH_USDC } from '../markets.js';
import type { Random } from '../random.js';

const Q96 = 2n ** 96n;
/** Of tiers, and of pools of v4 whose protocol takes its own fee first. */
const FEES_PPM = [100n, 500n, 3_000n, 10_000n, 600n, 3_997n, 10_990n];

/** A curve of WETH-USDC with a best price near `priceTicks`, some of it taken, and a vault that may hold less than its depth. */
export function randomCurveSource(random: Random, priceTicks: bigint, isBuy: boolean): Source {
  const market: Market = WETH_USDC;
  const step = (): bigint => random.big(1n, 200n) * (isBuy ? 1n : -1n);
  let subticks = (priceTicks + random.big(-100n, 100n)) * SUBTICKS_PER_TICK;
  const segments: Segment[] = Array.from({ length: random.int(1, 15) }, () => {
    subticks += step() * SUBTICKS_PER_TICK;
    return { lengthUnits: random.big(1n, 30_000n) * market.lotUnits, subticks };
  });
  const depth = segments.reduce((sum, { lengthUnits }) => sum + lengthUnits, 0n);
  const consumed = random.int(0, 2) === 0 ? random.big(0n, depth) : 0n;
  const sides = isBuy ? { asks: segments, bids: [] } : { asks: [], bids: segments };
  const ample = 10n ** 30n;
  const available = random.int(0, 9) === 0 ? random.big(1n, isBuy ? depth : 10n ** 11n) : ample;
  const buyToken = isBuy ? market.base.address : market.quote.address;
  return curveSource({ market, sides, consumed: { askUnits: consumed, bidUnits: consumed } }, buyToken, available);
}

/** A pool of the same pair, WETH as token0 or not, with up to ten ranges of different liquidity. */
export function randomPoolSource(random: Random, id: string, priceTicks: bigint, isBuy: boolean): Source {
  const wethIsToken0 = random.int(0, 1) === 0;
  // Ticks are cents per WETH; USDC has 6 decimals and WETH 18.
  const cents = (priceTicks * random.big(9_950n, 10_050n)) / 10_000n;
  const [numerator, denominator] = wethIsToken0 ? [cents * 10_000n, 10n ** 18n] : [10n ** 18n, cents * 10_000n];
  const sqrtPrice = squareRoot((numerator * Q96 * Q96) / denominator);
  const zeroForOne = isBuy !== wethIsToken0;
  // Liquidity of x WETH and its worth in USDC over all prices is x times the square root of the price.
  const perWeth = squareRoot(10n ** 18n * cents * 10_000n);
  let end = sqrtPrice;
  let liquidity = 0n;
  const ranges: PoolRange[] = Array.from({ length: random.int(1, 10) }, (_, i) => {
    const move = random.big(1n, 20_000n);
    end = zeroForOne ? (end * (1_000_000n - move)) / 1_000_000n : (end * (1_000_000n + move)) / 1_000_000n;
    // Now and then a range ends where a word of the bitmap does, and liquidity stays.
    if (i === 0 || random.int(0, 4) > 0) liquidity = random.int(0, 9) === 0 ? 0n : perWeth * random.big(1n, 3_000n);
    return { liquidity, endSqrtPrice: end };
  });
  return poolSource({ id, zeroForOne, feePpm: random.pick(FEES_PPM), sqrtPrice, ranges });
}

const DAI: Address = `0x${'da'.repeat(20)}`;

/** A pool of tokens of any decimals at about so many units of token1 per token0, `depthUnits` of token0 deep. */
function poolAt(random: Random, id: string, zeroForOne: boolean, [one, zero]: [bigint, bigint], depth: bigint): Source {
  const off = random.big(9_990n, 10_010n);
  const sqrtPrice = squareRoot((one * off * Q96 * Q96) / (zero * 10_000n));
  let end = sqrtPrice;
  const ranges: PoolRange[] = Array.from({ length: random.int(1, 6) }, () => {
    const move = random.big(10n, 20_000n);
    end = zeroForOne ? (end * (1_000_000n - move)) / 1_000_000n : (end * (1_000_000n + move)) / 1_000_000n;
    return { liquidity: (squareRoot((one * depth * depth) / zero) * random.big(1n, 2_000n)) / 10n, endSqrtPrice: end };
  });
  return poolSource({ id, zeroForOne, feePpm: random.pick(FEES_PPM), sqrtPrice, ranges });
}

/** Paths between USDC and WETH by way of DAI: `count` of them over fewer pools, so that some share one. */
export function randomPathSources(random: Random, count: number, priceTicks: bigint, isBuy: boolean): Source[] {
  if (count === 0) return [];
  const [usdc, weth] = [WETH_USDC.quote.address, WETH_USDC.base.address];
  const cents = (priceTicks * random.big(9_950n, 10_050n)) / 10_000n;
  // USDC is token0 beside DAI, DAI is token0 beside WETH; a dollar of each is 10^6, 10^18 and 10^20 / cents units.
  const stable = (i: number): Source =>
    poolAt(random, `stable:${i}`, isBuy, [10n ** 18n, 10n ** 6n], 10n ** 6n * random.big(1_000n, 100_000n));
  const ether = (i: number): Source =>
    poolAt(random, `ether:${i}`, isBuy, [10n ** 20n, cents * 10n ** 18n], 10n ** 18n * random.big(1_000n, 100_000n));
  const made = [0, 1].map((i) => ({ stable: stable(i), ether: ether(i) }));
  return Array.from({ length: count }, (_, i) => {
    const [first, second] = [made[i & 1]!.stable, made[(i >> 1) & 1]!.ether];
    const legs: Leg[] = isBuy
      ? [
          { source: first, sellToken: usdc, buyToken: DAI },
          { source: second, sellToken: DAI, buyToken: weth },
        ]
      : [
          { source: second, sellToken: weth, buyToken: DAI },
          { source: first, sellToken: DAI, buyToken: usdc },
        ];
    return pathSource(legs);
  });
}
