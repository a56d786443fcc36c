/** A partner's part of what orders buy, and hashes that go with them: from the quote to the chain, the ledger and the status. */
import { expect } from 'chai';
import { Contract, Wallet, parseEther, parseUnits } from 'ethers';
import { sandboxIssuerKey } from '../../../deploy/sandbox/accounts.js';
import { DEFAULT_GAS, checksGasOf, gasOf } from '../../../core/swap/pricing.js';
import { OWN } from '../../../core/swap/source.js';
import type { Address } from '../../../core/types.js';
import { OrderSettler__factory } from '../../../typechain-types/index.js';
import { forEachDatabase } from '../../support/db.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack, type SwapChanges } from '../../support/manual-suite.js';
import type { OrderAnswer, QuoteAnswer, SwapStack } from '../../support/swap-stack.js';

const PARTNER: Address = '0x00000000000000000000000000000000009a47e4';
const APP_DATA = `0x${'a9'.repeat(32)}`;
const ONE = parseEther('1');

type Partnered = QuoteAnswer & {
  partnerFee?: { partner: string; bps: number; amount: string; token: string };
  appData?: string;
};
type PartneredOrder = OrderAnswer & {
  partner?: string;
  partnerBps?: number;
  partnerFeeAmount?: string | null;
  appData?: string;
};

describe('orders with a partner', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    async function start(...[api, executor]: SwapChanges): Promise<void> {
      ({ chain, stack, taker } = await begin({ partnerMaxBps: 100, ...api }, executor));
      await stack.makeMarket();
    }

    beforeEach(() => start());
    afterEach(() => stack.stop());

    const asked = { partner: PARTNER, partnerBps: 50, appData: APP_DATA };
    const sale = async (change: object = {}): Promise<Partnered> =>
      stack.quote(taker.address, { sellAmountBeforeFee: ONE.toString(), ...asked, ...change });
    const refusal = async (change: object): Promise<string> => {
      const body = {
        chainId: 8453,
        from: taker.address,
        sellToken: stack.token('WETH'),
        buyToken: stack.token('USDC'),
      };
      const rest = { kind: 'sell', sellAmountBeforeFee: ONE.toString(), signingScheme: 'eip712', ...change };
      const [status, code, message] = await stack.refused('POST', '/quote', { ...body, ...rest });
      expect([status, code]).to.deep.equal([400, 'BAD_REQUEST']);
      return message;
    };
    async function filled(quote: QuoteAnswer): Promise<PartneredOrder> {
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const order: PartneredOrder = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order.reason)).to.equal('filled');
      return order;
    }
    const usdcOf = (account: string) => stack.balanceOf('USDC', account);
    const partOf = (gross: bigint, bps = 50n): bigint => (gross * bps) / 10_000n;
    const grossOf = ({ route }: Pick<QuoteAnswer, 'route'>): bigint =>
      route.reduce((sum, { buyAmount }) => sum + BigInt(buyAmount), 0n);

    it('have their terms in what is signed, and in the quote beside what the receiver gets', async () => {
      const quote = await sale();
      const gross = grossOf(quote);
      expect(quote.partnerFee).to.deep.equal({
        ...{ partner: PARTNER, bps: 50, token: stack.token('USDC') },
        amount: partOf(gross).toString(),
      });
      expect(quote.appData).to.equal(APP_DATA);
      expect(BigInt(quote.quote.buyAmount)).to.equal(gross - partOf(gross));
      const { message, types } = quote.permit2.typedData;
      expect(types['PartnerOrderWitness']?.map(({ name }) => name)).to.deep.equal([
        ...['recipient', 'tokenOut', 'minAmountOut', 'partner', 'partnerBps', 'appData'],
      ]);
      expect(message.witness).to.deep.equal({
        recipient: taker.address.toLowerCase(),
        tokenOut: stack.token('USDC'),
        minAmountOut: quote.quote.minBuyAmount,
        ...{ partner: PARTNER, partnerBps: '50', appData: APP_DATA },
      });
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.provider);
      expect(await settler.partnerWitnessTypeString()).to.equal(quote.permit2.witnessTypeString);
    });

    it('leave quotes without them as they were', async () => {
      const quote = await sale({ partner: undefined, partnerBps: undefined, appData: `0x${'0'.repeat(64)}` });
      expect(quote).not.to.have.any.keys('partnerFee', 'appData');
      expect(quote.permit2.typedData.types).to.have.property('OrderWitness');
      const order = await filled(quote);
      expect(order).not.to.have.any.keys('partner', 'partnerBps', 'partnerFeeAmount', 'appData');
    });

    it('pay the partner and the receiver what was quoted, and say so in status, list and ledger', async () => {
      const quote = await sale();
      const before = await usdcOf(taker.address);
      const { body } = await stack.submit(quote, taker);
      const waiting: PartneredOrder = await stack.order(body.orderId);
      expect([waiting.partner, waiting.partnerBps, waiting.partnerFeeAmount, waiting.appData]).to.deep.equal([
        ...[PARTNER, 50, null, APP_DATA],
      ]);
      await stack.land();
      const order: PartneredOrder = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order.reason)).to.equal('filled');
      expect([order.executedBuyAmount, order.partnerFeeAmount]).to.deep.equal([
        ...[quote.quote.buyAmount, quote.partnerFee?.amount],
      ]);
      expect((await usdcOf(taker.address)) - before).to.equal(BigInt(quote.quote.buyAmount));
      expect(await usdcOf(PARTNER)).to.equal(BigInt(quote.partnerFee!.amount));
      const list = await stack.request<{ orders: PartneredOrder[] }>('GET', `/orders?owner=${taker.address}`);
      expect(list.body.orders).to.deep.equal([order]);
      const row = await stack.db.knex('settled_orders').first();
      expect([row?.partner, row?.partner_units, row?.app_data]).to.deep.equal([
        ...[PARTNER, quote.partnerFee?.amount, APP_DATA],
      ]);
      expect(order.makers).to.have.length(1);
    });

    it('buy the exact amount for the receiver, and the part on top', async () => {
      const wanted = parseUnits('2000', 6);
      const quote = await sale({
        ...{ kind: 'buy', sellAmountBeforeFee: undefined, buyAmountAfterFee: wanted.toString(), partnerBps: 100 },
      });
      const part = BigInt(quote.partnerFee!.amount);
      expect([quote.quote.buyAmount, quote.quote.minBuyAmount]).to.deep.equal([`${wanted}`, `${wanted}`]);
      expect(part).to.equal(partOf(grossOf(quote), 100n));
      const before = await usdcOf(taker.address);
      const order = await filled(quote);
      expect(order.executedBuyAmount).to.equal(wanted.toString());
      expect((await usdcOf(taker.address)) - before).to.equal(wanted);
      expect(await usdcOf(PARTNER)).to.equal(part);
    });

    it('are filled with a hash alone, and with a partner of no part', async () => {
      const tagged = await filled(await sale({ partner: undefined, partnerBps: undefined }));
      expect([tagged.appData, tagged.partner]).to.deep.equal([APP_DATA, undefined]);
      const named = await filled(await sale({ partnerBps: 0, appData: undefined }));
      expect([named.partner, named.partnerBps, named.partnerFeeAmount]).to.deep.equal([PARTNER, 0, '0']);
      expect(await usdcOf(PARTNER)).to.equal(0n);
    });

    it('wait for a limit that counts without the part', async () => {
      const least = parseUnits('2475', 6);
      const quote = await sale({ orderClass: 'limit', minBuyAmount: least.toString(), partnerBps: 100 });
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      expect((await stack.order(body.orderId)).reason?.code).to.equal('LIMIT_NOT_REACHED');
      await stack.keepers.order(chain.address('maker1'), [{ side: 'bid', priceTicks: 250_009n, sizeLots: 100_000n }]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.land();
      const order: PartneredOrder = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order.reason)).to.equal('filled');
      const [got, part] = [BigInt(order.executedBuyAmount), BigInt(order.partnerFeeAmount ?? '0')];
      expect(got >= least, `${got}`).to.equal(true);
      expect(part).to.equal(partOf(got + part, 100n));
    });

    it('cost gas of their own in the fee, which covers what they take', async () => {
      const plain = await sale({ partner: undefined, partnerBps: undefined, appData: undefined });
      const quote = await sale();
      expect(BigInt(quote.quote.feeAmount) > BigInt(plain.quote.feeAmount)).to.equal(true);
      const { txHash } = await filled(quote);
      const receipt = (await chain.provider.getTransactionReceipt(txHash!))!;
      // A new owner's order is sent checked.
      const paidFor = gasOf(DEFAULT_GAS, [OWN]) + DEFAULT_GAS.partner + checksGasOf(DEFAULT_GAS, [OWN]);
      expect(receipt.gasUsed <= paidFor, `${receipt.gasUsed} of ${paidFor}`).to.equal(true);
    });

    it('have a price without a wallet', async () => {
      const query = `sellToken=${stack.token('WETH')}&buyToken=${stack.token('USDC')}&kind=sell&sellAmountBeforeFee=${ONE}`;
      type Price = { buyAmount: string; partnerFee?: { bps: number; amount: string; token: string } };
      const { body } = await stack.request<Price>('GET', `/price?${query}&partnerBps=100`);
      const gross = BigInt(body.buyAmount) + BigInt(body.partnerFee?.amount ?? '0');
      const amount = partOf(gross, 100n).toString();
      expect(body.partnerFee).to.deep.equal({ bps: 100, amount, token: stack.token('USDC') });
      const plain = await stack.request<Price>('GET', `/price?${query}`);
      expect(plain.body).not.to.have.property('partnerFee');
      const [, , message] = await stack.refused('GET', `/price?${query}&partnerBps=101`, undefined);
      expect(message).to.match(/partnerBps: must be 0 to 100/);
    });

    describe('refused', () => {
      it('are parts above the limit, and any where the operator pays none', async () => {
        expect(await refusal({ ...asked, partnerBps: 101 })).to.match(/partnerBps: must be 0 to 100/);
        await stack.stop();
        await start({ partnerMaxBps: 0 });
        expect(await refusal(asked)).to.match(/pays no partners/);
        await filled(await sale({ partnerBps: 0 }));
      });

      it('are fields that make no sense', async () => {
        expect(await refusal({ partner: PARTNER })).to.match(/partnerBps: required with partner/);
        expect(await refusal({ partnerBps: 1 })).to.match(/partner: required with partnerBps/);
        expect(await refusal({ ...asked, partner: '0x12' })).to.match(/partner: must be an address/);
        expect(await refusal({ ...asked, partnerBps: 1.5 })).to.match(/partnerBps/);
        expect(await refusal({ ...asked, partnerBps: -1 })).to.match(/partnerBps/);
        expect(await refusal({ appData: '0x1234' })).to.match(/appData: must be a hash/);
      });

      it('are partners that would lose the tokens', async () => {
        const lost = [stack.token('USDC'), chain.manifest.contracts['custodian'], `0x${'0'.repeat(40)}`];
        for (const partner of lost)
          expect(await refusal({ ...asked, partner }), partner).to.match(
            /partner: 0x[0-9a-f]{40} can't receive tokens/,
          );
      });
    });

    it('whose partner the token refuses are not sent, and cost nobody gas', async () => {
      const quote = await sale();
      const issuer = new Wallet(sandboxIssuerKey(), chain.provider);
      const usdc = new Contract(stack.token('USDC'), ['function blacklist(address)'], issuer);
      await usdc.getFunction('blacklist').send(PARTNER, { gasLimit: 100_000n });
      await chain.mine();
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect([order.status, order.reason?.code]).to.deep.equal(['pending', 'REVERTED']);
      expect(order.attempts.map(({ result }) => result)).to.deep.equal(['refused']);
    });
  }, forEachDatabase);
});
