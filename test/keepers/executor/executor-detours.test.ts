/** Orders whose best route passes a token that keeps part of its transfers, or that is in quarantine. */
import { expect } from 'chai';
import { MaxUint256, Wallet, parseUnits } from 'ethers';
import { sandboxIssuerKey } from '../../../deploy/sandbox/accounts.js';
import { SwitchFeeToken__factory } from '../../../typechain-types/factories/mocks/SwitchFeeToken__factory.js';
import type { SwitchFeeToken } from '../../../typechain-types/index.js';
import { sellToPool } from '../../support/contracts/pool-router.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { startSwapStack, type OrderAnswer, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const GAS = { gasLimit: 1_000_000n };
const AMOUNT = parseUnits('5000', 6);

forOneDatabase((name, open) =>
  describe(`orders with a way around a token in between on ${name}`, function () {
    this.timeout(240_000);
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let between: SwitchFeeToken;

    before(async () => {
      chain = await startManualChain(4, { pools: true });
    });

    beforeEach(async () => {
      await chain.reset();
      taker = chain.wallet('taker3');
      stack = await startSwapStack(await open(), chain, {}, { newAccountGas: 700_000n });
      const issuer = new Wallet(sandboxIssuerKey(), chain.provider);
      const made = await new SwitchFeeToken__factory(issuer).deploy(8);
      await chain.mine();
      const code = await chain.provider.getCode(await made.getAddress());
      await chain.provider.send('hardhat_setCode', [stack.token('cbBTC'), code]);
      between = SwitchFeeToken__factory.connect(stack.token('cbBTC'), issuer);
      await makeDirectDear();
      await stack.keepers.watcher.scan();
    });

    afterEach(() => stack?.stop());
    after(() => chain?.close());

    /** Raises the price of WETH at its pool with USDC by some percent. */
    async function makeDirectDear(): Promise<void> {
      const { contracts } = chain.manifest;
      const usdc = chain.tokenAs('USDC', 'taker1');
      await usdc.getFunction('approve').send(contracts['uniswapV3Router'], MaxUint256, GAS);
      await chain.mine();
      const sale = { tokenIn: stack.token('USDC'), tokenOut: stack.token('WETH'), amountIn: parseUnits('250000', 6) };
      await sellToPool(chain, 'taker1', sale, GAS);
      await chain.mine();
    }

    const asked = (slippageBps = 2_000) => ({
      sellToken: stack.token('USDC'),
      buyToken: stack.token('WETH'),
      sellAmountBeforeFee: AMOUNT.toString(),
      slippageBps,
    });

    const quoted = (slippageBps?: number): Promise<QuoteAnswer> => stack.quote(taker.address, asked(slippageBps));

    const passes = ({ route }: Pick<QuoteAnswer | OrderAnswer, 'route'>): boolean =>
      route.some(({ legs = [] }) => legs.some(({ buyToken }) => buyToken === stack.token('cbBTC')));

    async function filledAround(quote: QuoteAnswer): Promise<void> {
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order)).to.equal('filled');
      const events = await logsOf(order.txHash!);
      expect(events, 'tokens that moved').not.to.include(stack.token('cbBTC'));
    }

    async function logsOf(hash: string): Promise<string[]> {
      const { logs } = (await chain.provider.getTransactionReceipt(hash))!;
      return logs.map(({ address }) => address.toLowerCase());
    }

    it('go through it while it is as it should be', async () => {
      const quote = await quoted();
      expect(passes(quote), JSON.stringify(quote.route)).to.equal(true);
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const order = await stack.order(body.orderId);
      expect(order.status, JSON.stringify(order)).to.equal('filled');
      expect(await logsOf(order.txHash!)).to.include(stack.token('cbBTC'));
    });

    for (const [who, onTop] of [
      ['recipient', false],
      ['sender', true],
    ] as const)
      it(`are filled around it when its issuer takes a fee of the ${who}`, async () => {
        const quote = await quoted();
        expect(passes(quote), JSON.stringify(quote.route)).to.equal(true);
        await between.setFee(1_000, onTop, GAS);
        await chain.mine();
        await stack.keepers.watcher.scan();
        await filledAround(quote);
        await filledAround(await quoted());
      });

    it('are not quoted through it while transfers of it are measured to be uneven', async () => {
      await between.mint(chain.manifest.contracts['custodian'], parseUnits('1', 8), GAS);
      await between.setFee(1_000, false, GAS);
      await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.measureTransfers();
      const quote = await quoted(0);
      expect(passes(quote), JSON.stringify(quote.route)).to.equal(false);
      const { body } = await stack.submit(quote, taker);
      await stack.land();
      const { status, executedBuyAmount } = await stack.order(body.orderId);
      expect([status, executedBuyAmount], 'what was quoted').to.deep.equal(['filled', quote.quote.buyAmount]);
      await between.setFee(0, false, GAS);
      await chain.mine();
      await stack.measureTransfers();
      expect(passes(await quoted()), 'once the fee is off').to.equal(true);
    });

    it('are quoted over the token that they buy as before while its transfers are uneven', async () => {
      await between.mint(chain.manifest.contracts['custodian'], parseUnits('1', 8), GAS);
      await between.setFee(1_000, false, GAS);
      await chain.mine();
      await stack.keepers.watcher.scan();
      const buying = { ...asked(), buyToken: stack.token('cbBTC') };
      // What a quote leaves of the amount for gas changes from block to block; the way does not.
      const sources = async (): Promise<string[]> =>
        (await stack.quote(taker.address, buying)).route.map(({ source }) => source);
      const before = await sources();
      await stack.measureTransfers();
      expect(await sources())
        .to.deep.equal(before)
        .and.to.not.deep.equal([]);
    });

    it('are neither quoted nor sent through it while it is in quarantine', async () => {
      const quote = await quoted();
      expect(passes(quote), JSON.stringify(quote.route)).to.equal(true);
      stack.quarantine(stack.token('cbBTC'));
      await filledAround(quote);
      await chain.mine();
      const later = await quoted();
      expect(passes(later)).to.equal(false);
      await filledAround(later);
    });

    it('wait where there is no way around one in quarantine', async () => {
      const quote = await quoted();
      const { body } = await stack.submit(quote, taker);
      stack.quarantine(stack.token('cbBTC'));
      const executor = await stack.restartExecutor({
        marketData: (data) => ({ ...data, sources: () => Promise.resolve([]) }),
      });
      await executor.round();
      const { status, reason } = await stack.order(body.orderId);
      expect([status, reason?.code]).to.deep.equal(['pending', 'TOKEN_QUARANTINED']);
    });
  }),
);
