/**
 * Every kind of route over the published contracts of the venues, sold one way and bought back the other: while nothing moves, what is executed is
 * what was quoted, to the unit.
 */
import { expect } from 'chai';
import type { Contract } from 'ethers';
import { MaxUint256, parseUnits, type Wallet } from 'ethers';
import { OrderSettler__factory } from '../../../typechain-types/index.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { startSwapStack, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const TOKENS = { WETH: 18, USDC: 6, DAI: 18, cbBTC: 8 } as const;
type Symbol = keyof typeof TOKENS;
const VENUES = ['uniswap-v2', 'uniswap-v3', 'uniswap-v4'] as const;
type Venue = (typeof VENUES)[number];

interface Case {
  what: string;
  /** What the settler may call, beside our own curve of WETH-USDC where `hasCurve`. */
  venues: readonly Venue[];
  hasCurve: boolean;
  sell: [Symbol, string];
  /** Bought back afterwards. */
  buy: Symbol;
  /** Places in the order of the legs, or the places of the parts, by venue. */
  places: (route: string[][]) => boolean;
}

const venueOf = (source: string): string => source.split(':', 1)[0]!;
const isJust =
  (...legs: string[]) =>
  (route: string[][]): boolean =>
    route.length === 1 && [legs, legs.toReversed()].some((one) => one.join() === route[0]!.map(venueOf).join());
const hasAll =
  (...venues: string[]) =>
  (route: string[][]): boolean =>
    venues.every((venue) => route.some((legs) => legs.length === 1 && venueOf(legs[0]!) === venue));

const CASES: Case[] = [
  {
    ...{ what: 'our own curve', venues: [], hasCurve: true, sell: ['WETH', '1.234'], buy: 'USDC' },
    places: isJust('own'),
  },
  ...VENUES.map((venue): Case => ({
    ...{ what: venue, venues: [venue], hasCurve: false, sell: ['WETH', '2.5'], buy: 'USDC' },
    places: isJust(venue),
  })),
  {
    ...{ what: 'three venues at once', venues: VENUES, hasCurve: false, sell: ['WETH', '90'], buy: 'USDC' },
    places: hasAll(...VENUES),
  },
  {
    ...{ what: 'our own curve and three venues', venues: VENUES, hasCurve: true, sell: ['WETH', '97'], buy: 'USDC' },
    places: hasAll('own', ...VENUES),
  },
  ...VENUES.map((venue): Case => ({
    ...{ what: `our own curve and then ${venue}`, venues: [venue], hasCurve: true, sell: ['USDC', '2500'], buy: 'DAI' },
    places: isJust('own', venue),
  })),
  {
    ...{
      what: 'one venue and then another',
      venues: ['uniswap-v3'],
      hasCurve: false,
      sell: ['USDC', '800'],
      buy: 'DAI',
    },
    places: isJust('uniswap-v3', 'uniswap-v3'),
  },
  {
    ...{ what: 'a pool, our own curve, and a pool', venues: ['uniswap-v4'], hasCurve: true, sell: ['cbBTC', '0.05'] },
    ...{ buy: 'DAI', places: isJust('uniswap-v4', 'own', 'uniswap-v4') },
  },
];

forOneDatabase((name, open) =>
  describe(`every kind of route on ${name}`, function () {
    this.timeout(300_000);
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    before(async () => {
      chain = await startManualChain(3, { pools: true, pairs: true, managedPools: true });
      taker = chain.wallet('taker3');
    });

    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      // As owners who have traded before are served.
      stack = await startSwapStack(await open(), chain, {}, { newAccountGas: 700_000n });
      await chain.provider.send('hardhat_setBalance', [taker.address, '0x8ac7230489e80000']);
      for (const symbol of ['DAI', 'cbBTC'] as const) {
        const token = chain.tokenAs(symbol, 'taker1');
        const half = (await stack.balanceOf(symbol, chain.address('taker1'))) / 2n;
        await token.getFunction('transfer').send(taker.address, half, { gasLimit: 100_000n });
        await (token.connect(taker) as Contract)
          .getFunction('approve')
          .send(chain.manifest.contracts['permit2'], MaxUint256, { gasLimit: 100_000n });
        await mine();
      }
    });

    afterEach(() => stack.stop());

    async function mine(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function allow(venues: readonly Venue[]): Promise<void> {
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.wallet('owner'));
      for (const venue of VENUES) {
        const at = chain.manifest.contracts[`${venue.replace('uniswap-v', 'uniswapV')}Router`]!;
        await settler.setTarget(at, venues.includes(venue), { gasLimit: 200_000n });
        await mine();
      }
    }

    /** Fills a quote while nothing moves, and compares all that changes hands with it. */
    async function fill(quote: QuoteAnswer, sell: Symbol, buy: Symbol): Promise<void> {
      const holders = [taker.address, chain.manifest.contracts['orderSettler']!];
      const held = async () => {
        const all = Object.keys(TOKENS).map(async (symbol) => [
          symbol,
          await Promise.all(holders.map((one) => stack.balanceOf(symbol, one))),
        ]);
        return Object.fromEntries(await Promise.all(all)) as Record<Symbol, [bigint, bigint]>;
      };
      const before = await held();
      const { status, body } = await stack.submit(quote, taker);
      expect(status, JSON.stringify(body)).to.equal(200);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order)).to.equal('filled');
      const paid = quote.route.reduce((sum, one) => sum + BigInt(one.sellAmount), BigInt(quote.quote.feeAmount));
      expect([order.executedSellAmount, order.executedBuyAmount]).to.deep.equal([`${paid}`, quote.quote.buyAmount]);
      expect(order.route).to.deep.equal(quote.route);
      const after = await held();
      for (const symbol of Object.keys(TOKENS) as Symbol[]) {
        const expected = symbol === sell ? -paid : symbol === buy ? BigInt(quote.quote.buyAmount) : 0n;
        expect(after[symbol][0] - before[symbol][0], `${symbol} of the owner`).to.equal(expected);
        expect(after[symbol][1], `${symbol} of the settler`).to.equal(0n);
      }
    }

    for (const { what, venues, hasCurve, sell, buy, places } of CASES) {
      it(`over ${what}`, async () => {
        await allow(venues);
        if (hasCurve) await stack.makeMarket();
        const [symbol, amount] = sell;
        const units = parseUnits(amount, TOKENS[symbol]).toString();
        const legsOf = ({ route }: QuoteAnswer): string[][] =>
          route.map(({ source, legs }) => legs?.map((leg) => leg.source) ?? [source]);
        const sold = await stack.quote(taker.address, {
          ...{ sellToken: stack.token(symbol), buyToken: stack.token(buy), sellAmountBeforeFee: units },
        });
        expect(places(legsOf(sold)), JSON.stringify(legsOf(sold))).to.equal(true);
        await fill(sold, symbol, buy);
        if (hasCurve) await stack.keepers.poster.round();
        await mine();
        const bought = await stack.quote(taker.address, {
          ...{ kind: 'buy', sellToken: stack.token(buy), buyToken: stack.token(symbol), buyAmountAfterFee: units },
        });
        expect(places(legsOf(bought)), JSON.stringify(legsOf(bought))).to.equal(true);
        await fill(bought, buy, symbol);
      });
    }
  }),
);
