/** How far from the middle of the market a route is, where amounts have few units. */
import { expect } from 'chai';
import { pairSource } from '../../../core/swap/pair-source.js';
import type { Address } from '../../../core/types.js';
import type { Head } from '../../../liquidity/eth.js';
import type { MarketData } from '../../../liquidity/market-data.js';
import { impactBps } from '../../../server/swap/impact.js';

const USDC: Address = `0x${'11'.repeat(20)}`;
const BTC: Address = `0x${'22'.repeat(20)}`;
/** A bitcoin in 8 decimals at 87,654.321 dollars in 6: a unit of it is worth 877 of the other. */
const RESERVES = { [USDC]: 8_765_432_100_000n * 10n, [BTC]: 100n * 10n ** 8n * 10n };
const HEAD: Head = { number: 1, hash: '0x', timestampSec: 0, baseFeeWei: 0n };

const poolOf = (feePpm: bigint) => (sellToken: Address, buyToken: Address) =>
  pairSource({ id: 'pool', feePpm, reserveIn: RESERVES[sellToken]!, reserveOut: RESERVES[buyToken]! })!;

describe('the price impact of a route', () => {
  for (const feePpm of [100n, 3_000n])
    for (const [what, sellToken, buyToken] of [
      ['of dollars for a coin of few units', USDC, BTC],
      ['of a coin of few units for dollars', BTC, USDC],
    ] as const)
      it(`is the fee of ${feePpm} ppm for small trades ${what}, whatever they are`, async () => {
        const pool = poolOf(feePpm);
        const marketData = {
          sources: (sell: Address, buy: Address) => Promise.resolve([pool(sell, buy)]),
          paths: () => Promise.resolve([]),
        } as unknown as MarketData;
        // From ten dollars to two thousand, each of which is less than a tenth of a basis point of the pool.
        for (let dollars = 10n; dollars < 2_000n; dollars += 17n) {
          const inUnits = sellToken === USDC ? dollars * 1_000_000n : (dollars * 1_000_000n) / 877n;
          const outUnits = pool(sellToken, buyToken).outputFor(inUnits)!;
          const plan = { parts: [], inUnits, outUnits, feeUnits: 0n };
          const bps = await impactBps({ marketData }, { sellToken, buyToken }, plan, HEAD, 0);
          const fee = Number(feePpm) / 100;
          expect(bps, `${dollars} dollars`).to.be.within(fee - 1, fee + 1);
        }
      });
});
