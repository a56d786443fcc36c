/** What gas costs in a token: nobody sets it with less than it would gain. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Rate, Source, Traded } from '../../core/swap/source.js';
import type { Address, Market } from '../../core/types.js';
import type { Head } from '../../liquidity/eth.js';
import { GAS_PRICE_ORDERS, createMarketData } from '../../liquidity/market-data.js';
import type { Venue } from '../../liquidity/venue.js';

const TOKEN: Address = `0x${'11'.repeat(20)}`;
const WETH: Address = `0x${'42'.repeat(20)}`;
/** Trades for either. */
const MID: Address = `0x${'33'.repeat(20)}`;
const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
/** Units of the token per ether. */
const FAIR = 2_500_000_000n;

/** Gives up to `depthWei` of ether at one price, in units per ether. */
function offer(id: string, unitsPerEther: bigint, depthWei: bigint): Source {
  const inputFor = (wei: bigint) => (wei > depthWei ? null : (wei * unitsPerEther + ETHER - 1n) / ETHER);
  return {
    id: `test:${id}`,
    inputFor,
    outputFor: (units) => {
      const wei = (units * ETHER) / unitsPerEther;
      return wei === 0n || wei > depthWei ? null : wei;
    },
    tradedAt: (rate: Rate): Traded =>
      ETHER * rate.in >= unitsPerEther * rate.out
        ? { inUnits: (depthWei * unitsPerEther + ETHER - 1n) / ETHER, outUnits: depthWei }
        : { inUnits: 0n, outUnits: 0n },
    stretches: [
      {
        ...{ gain: ETHER, base: unitsPerEther, slope: 0n },
        ...{ inUnits: (depthWei * unitsPerEther + ETHER - 1n) / ETHER, outUnits: depthWei },
      },
    ],
  };
}

/** What a pair of tokens trades at. */
type Sources = (sellToken: Address, buyToken: Address) => Source[];

/** What so much ether costs of the token, as gas is priced; null when nothing prices it. */
async function pricePoint(
  sources: Source[] | Sources,
  baseFeeWei: bigint,
): Promise<{ units: bigint; wei: bigint } | null> {
  const direct: Sources = (sellToken, buyToken) =>
    typeof sources === 'function' ? sources(sellToken, buyToken) : buyToken === WETH ? sources : [];
  const venue = {
    ...{ name: 'test', target: TOKEN },
    sources: (...pair: Parameters<Sources>) => Promise.resolve(direct(...pair)),
  } as unknown as Venue;
  // The settler may call every target; nothing else is asked.
  const yes = () => Promise.resolve([`0x${'1'.padStart(64, '0')}`]);
  const eth = { call: () => Promise.reject(new Error('offline')), batch: yes };
  const contracts = { curveBook: TOKEN, custodian: TOKEN, entrypoint: TOKEN, settler: TOKEN };
  const data = createMarketData(
    // A market only names a token that ways may go through; no curve of it is asked.
    {
      ...{ eth, contracts, venues: [venue], wrappedNative: WETH },
      markets: () => [{ base: { address: MID }, quote: { address: MID } } as Market],
    },
    (_, error) => {
      throw error;
    },
  );
  const head: Head = { number: 1, hash: `0x${'01'.repeat(32)}`, timestampSec: 1_000, baseFeeWei };
  return data.gasPrice(TOKEN, head, 1_000);
}

/** Units of the token per ether as gas is priced, without what is below a unit; null when nothing prices it. */
async function priced(sources: Source[] | Sources, baseFeeWei: bigint): Promise<bigint | null> {
  const price = await pricePoint(sources, baseFeeWei);
  return price === null ? null : (price.units * ETHER) / price.wei;
}

describe('the price of gas in a token', () => {
  it('is not set by a tiny pool that sells ether for next to nothing', async () => {
    const sources = [offer('fair', FAIR, 100n * ETHER), offer('tiny', 1n, ETHER / 500n)];
    const price = (await priced(sources, GWEI))!;
    expect(price * 10n > FAIR * 9n, `${price} of ${FAIR}`).to.equal(true);
  });

  it('is not set by a deep one that asks too much either', async () => {
    expect(await priced([offer('fair', FAIR, 100n * ETHER), offer('dear', FAIR * 10n, 900n * ETHER)], GWEI)).to.equal(
      FAIR,
    );
  });

  it('is not told where there is less ether than it takes to price it', async () => {
    expect(await priced([offer('tiny', 1n, ETHER / 500n)], GWEI)).to.equal(null);
    expect(await priced([], GWEI)).to.equal(null);
  });

  it('is that of the ways over other tokens where a pool of dust, or a dear one of any depth, trades it directly', async () => {
    for (const depthWei of [ETHER / 1_000_000n, 100n * ETHER]) {
      for (const askedUnits of [FAIR * 10n, FAIR * 1_000n]) {
        const price = await priced((sellToken, buyToken) => {
          if (sellToken === TOKEN && buyToken === WETH) return [offer('direct', askedUnits, depthWei)];
          if (sellToken === TOKEN && buyToken === MID) return [offer('mid', FAIR, 1_000n * ETHER)];
          return sellToken === MID && buyToken === WETH ? [offer('weth', ETHER, 1_000n * ETHER)] : [];
        }, GWEI);
        expect(price, `${depthWei} at ${askedUnits}`).to.satisfy(
          (found: bigint | null) => found !== null && found >= FAIR && found <= FAIR + 10n,
        );
      }
    }
    // What sells dust for next to nothing changes next to nothing.
    const price = await priced((sellToken, buyToken) => {
      if (sellToken === TOKEN && buyToken === WETH) return [offer('direct', 1n, ETHER / 1_000_000n)];
      if (sellToken === TOKEN && buyToken === MID) return [offer('mid', FAIR, 1_000n * ETHER)];
      return sellToken === MID && buyToken === WETH ? [offer('weth', ETHER, 1_000n * ETHER)] : [];
    }, GWEI);
    expect(price! * 1_000n, `${price} of ${FAIR}`).to.satisfy((found: bigint) => found > FAIR * 999n);
  });

  it('costs whoever lowers it more ether than that saves on as many orders as can be under way', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.bigInt(10n ** 6n, 50n * GWEI),
        fc.bigInt(10n ** 14n, 50n * ETHER),
        fc.bigInt(1n, FAIR - 1n),
        async (baseFeeWei, givenWei, askedUnits) => {
          const { units, wei } = (await pricePoint(
            [offer('fair', FAIR, 100n * ETHER), offer('false', askedUnits, givenWei)],
            baseFeeWei,
          ))!;
          // Ether that others take from the false pool, less what they pay for it.
          const lostWei = givenWei - (givenWei * askedUnits) / FAIR;
          const orderWei = 400_000n * baseFeeWei;
          // Of the price as it is, not in whole units: of 48 dear orders, one unit per ether is more than a slightly false pool loses.
          const savedWei = (48n * orderWei * (wei * FAIR - units * ETHER)) / (wei * FAIR);
          expect(savedWei <= lostWei, `saves ${savedWei} for ${lostWei}`).to.equal(true);
        },
      ),
      // A pool that is false by two units per ether.
      { numRuns: 300, examples: [[36_661_191_241n, 351_321_211_240_000_000n, 2_499_999_998n]] },
    );
    expect(GAS_PRICE_ORDERS >= 48n).to.equal(true);
  });
});
