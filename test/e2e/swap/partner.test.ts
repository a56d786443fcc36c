/** Orders with a partner and a hash, from the quote to the balances: over our own curve, over pools, over both, and with an approval by signature. */
import { expect } from 'chai';
import { Contract, MaxUint256, Wallet } from 'ethers';
import { grossUnits, partnerUnits } from '../../../core/swap/partner.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import {
  signApproval,
  startSwapStack,
  type OrderAnswer,
  type QuoteAnswer,
  type SwapStack,
} from '../../support/swap-stack.js';

const PARTNER = '0x00000000000000000000000000000000009a47e4';
const APP_DATA = `0x${'5c'.repeat(32)}`;
const BPS = 35;
const ETHER = 10n ** 18n;
const DOLLAR = 10n ** 6n;

type Symbol = 'WETH' | 'USDC';
type PartnerQuote = QuoteAnswer & { partnerFee: { partner: string; bps: number; amount: string; token: string } };
type PartnerOrder = OrderAnswer & {
  partner: string;
  partnerBps: number;
  partnerFeeAmount: string | null;
  appData: string;
};

/** Where an order is executed: what our curve has at first, and how much is sold or bought of WETH. */
const PLACES = [
  { place: 'our own curve', hasCurve: true, units: 2n * ETHER, isIt: (ids: string[]) => ids.join() === 'own' },
  {
    ...{ place: 'pools', hasCurve: false, units: 90n * ETHER },
    isIt: (ids: string[]) => ids.length > 1 && ids.every((id) => id.startsWith('uniswap-')),
  },
  {
    ...{ place: 'our own curve and pools', hasCurve: true, units: 60n * ETHER },
    isIt: (ids: string[]) => ids.includes('own') && ids.some((id) => id.startsWith('uniswap-')),
  },
];

forOneDatabase((name, open) =>
  describe(`orders with a partner end to end on ${name}`, function () {
    this.timeout(240_000);
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let receiver: string;

    before(async () => {
      chain = await startManualChain(1, { pools: true, pairs: true });
      taker = chain.wallet('taker3');
      receiver = chain.address('taker2');
    });

    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      // As owners who have traded before are served.
      stack = await startSwapStack(await open(), chain, { partnerMaxBps: 100 }, { newAccountGas: 700_000n });
      await mine();
    });

    afterEach(() => stack.stop());

    async function mine(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    const quoteOf = (from: string, change: object): Promise<PartnerQuote> =>
      stack.quote(from, {
        ...{ receiver, partner: PARTNER, partnerBps: BPS, appData: APP_DATA },
        ...change,
      }) as Promise<PartnerQuote>;

    /** What everybody concerned holds of both tokens. */
    async function held(owner: string): Promise<Record<Symbol, bigint[]>> {
      const settler = chain.manifest.contracts['orderSettler']!;
      const of = (symbol: Symbol) =>
        Promise.all([owner, receiver, PARTNER, settler].map((one) => stack.balanceOf(symbol, one)));
      return { WETH: await of('WETH'), USDC: await of('USDC') };
    }

    /** Submits, fills, and compares all that changed hands, and all that the API says, with the quote. */
    async function expectFilled(quote: PartnerQuote, owner: Wallet, [sell, buy]: [Symbol, Symbol], extra: object = {}) {
      const { sellAmount, buyAmount, feeAmount, kind } = quote.quote;
      const gross = quote.route.reduce((sum, one) => sum + BigInt(one.buyAmount), 0n);
      const part = partnerUnits(gross, { partnerBps: BPS });
      expect(part > 0n).to.equal(true);
      expect(quote.partnerFee).to.deep.equal({
        ...{ partner: PARTNER, bps: BPS, amount: part.toString(), token: stack.token(buy) },
      });
      expect(BigInt(buyAmount)).to.equal(gross - part);
      const { types, message, primaryType } = quote.permit2.typedData;
      expect([primaryType, Object.keys(types).filter((type) => type.endsWith('Witness'))]).to.deep.equal([
        'PermitWitnessTransferFrom',
        ['PartnerOrderWitness'],
      ]);
      expect(message.witness).to.include({ partner: PARTNER, partnerBps: `${BPS}`, appData: APP_DATA });
      const before = await held(owner.address);
      const { status, body } = await stack.submit(quote, owner, extra);
      expect(status, JSON.stringify(body)).to.equal(200);
      const waiting = (await stack.order(body.orderId)) as PartnerOrder;
      expect(waiting).to.include({ status: 'pending', partner: PARTNER, partnerBps: BPS, appData: APP_DATA });
      expect([waiting.partnerFeeAmount, waiting.txHash, waiting.executedBuyAmount]).to.deep.equal([null, null, '0']);
      await stack.land();
      const order = (await stack.order(body.orderId)) as PartnerOrder;
      expect(order.status, JSON.stringify(order)).to.equal('filled');
      const spent = quote.route.reduce((sum, one) => sum + BigInt(one.sellAmount), BigInt(feeAmount));
      if (kind === 'sell') expect(spent).to.equal(BigInt(sellAmount));
      expect(order).to.include({
        ...{ executedSellAmount: spent.toString(), executedBuyAmount: buyAmount, partnerFeeAmount: part.toString() },
        ...{ partner: PARTNER, partnerBps: BPS, appData: APP_DATA },
      });
      expect(order.route).to.deep.equal(quote.route);
      const after = await held(owner.address);
      const moved = (symbol: Symbol) => after[symbol].map((units, i) => units - before[symbol][i]!);
      expect(moved(sell), `${sell} of owner, receiver, partner and settler`).to.deep.equal([-spent, 0n, 0n, 0n]);
      expect(moved(buy), `${buy} of owner, receiver, partner and settler`).to.deep.equal([
        ...[0n, BigInt(buyAmount), part, 0n],
      ]);
      const listed = await stack.request<{ orders: PartnerOrder[] }>('GET', `/orders?owner=${owner.address}`);
      expect(listed.body.orders).to.deep.equal([order]);
      return order;
    }

    for (const { place, hasCurve, units, isIt } of PLACES) {
      it(`sell over ${place}: owner, receiver and partner to the unit`, async () => {
        if (hasCurve) await stack.makeMarket();
        const quote = await quoteOf(taker.address, { sellAmountBeforeFee: units.toString() });
        const ids = quote.route.map(({ source }) => source);
        expect(isIt(ids), ids.join()).to.equal(true);
        const { makers } = await expectFilled(quote, taker, ['WETH', 'USDC']);
        expect(makers.map(({ pair }) => pair)).to.deep.equal(hasCurve ? ['WETH-USDC'] : []);
      });

      it(`buy over ${place}: the receiver gets the exact amount, and the partner its part on top`, async () => {
        if (hasCurve) await stack.makeMarket();
        const wanted = (units * 2_400n * DOLLAR) / ETHER;
        const quote = await quoteOf(taker.address, { kind: 'buy', buyAmountAfterFee: wanted.toString() });
        const ids = quote.route.map(({ source }) => source);
        expect(isIt(ids), ids.join()).to.equal(true);
        expect(quote.quote.buyAmount).to.equal(wanted.toString());
        const gross = quote.route.reduce((sum, { buyAmount }) => sum + BigInt(buyAmount), 0n);
        // Of a split over pools the last one may bring more than asked for; never less.
        expect(gross).to.equal(grossUnits(wanted, { partnerBps: BPS }));
        await expectFilled(quote, taker, ['WETH', 'USDC']);
      });
    }

    for (const hasCurve of [true, false]) {
      it(`bring an approval by signature, over ${hasCurve ? 'our own curve' : 'a pool'}, for an owner who never sent a transaction`, async () => {
        if (hasCurve) await stack.makeMarket();
        const owner = new Wallet(Wallet.createRandom().privateKey, chain.provider);
        const units = 2_000n * DOLLAR;
        const given = { gasLimit: 100_000n };
        await chain.tokenAs('USDC', 'taker1').getFunction('transfer').send(owner.address, units, given);
        await mine();
        const permit2 = chain.manifest.contracts['permit2']!;
        const erc20 = new Contract(
          stack.token('USDC'),
          ['function allowance(address, address) view returns (uint256)'],
          chain.provider,
        );
        const allowance = (): Promise<bigint> =>
          erc20.getFunction('allowance')(owner.address, permit2) as Promise<bigint>;
        expect(await allowance()).to.equal(0n);
        const quote = await quoteOf(owner.address, {
          ...{ sellToken: stack.token('USDC'), buyToken: stack.token('WETH'), sellAmountBeforeFee: units.toString() },
        });
        const { source } = quote.route[0]!;
        expect(hasCurve ? source === 'own' : source.startsWith('uniswap-'), source).to.equal(true);
        expect([quote.approval.required, quote.approval.type]).to.deep.equal([true, 'eip2612']);
        const extra = { approvalSignature: await signApproval(quote, owner) };
        await expectFilled(quote, owner, ['USDC', 'WETH'], extra);
        // Approved without an end, of which USDC takes off what was spent.
        expect(await allowance()).to.equal(MaxUint256 - units);
        expect(await stack.balanceOf('USDC', owner.address), 'all of it is sold, the fee among it').to.equal(0n);
        expect(await chain.provider.getBalance(owner.address)).to.equal(0n);
        expect(await chain.provider.getTransactionCount(owner.address)).to.equal(0);
      });
    }
  }),
);
