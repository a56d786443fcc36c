/** New accounts that spoil the order that was sent for them: it looks first, so that each way costs them more than the service. */
import { expect } from 'chai';
import { Contract, MaxUint256, Transaction, Wallet, parseEther, parseUnits, type TransactionResponse } from 'ethers';
import { permitTypedData } from '../../../core/swap/typed-data.js';
import type { Address, Hex } from '../../../core/types.js';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { fillIn } from '../../../keepers/executor/permits.js';
import { permitCall } from '../../../liquidity/permits.js';
import { digestOf } from '../../../server/swap/signature.js';
import { forOneDatabase } from '../../support/db.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { sellToPool } from '../../support/contracts/pool-router.js';
import { signApproval, startSwapStack, type SwapStack } from '../../support/swap-stack.js';

const FUNDS = { WETH: parseEther('1'), USDC: parseUnits('2500', 6) } as const;
type Sold = keyof typeof FUNDS;
/** Runs until its gas is used up. */
const ENDLESS = '0x5b5f56';
/** The least that a transaction takes which gives a key code (EIP-7702): its own gas, and that of a delegation of an account that exists. */
const DELEGATION_GAS = 21_000n + 12_500n;
const TRANSFER_GAS = 21_000n;
const FIRST = { gasLimit: 500_000n, gasPrice: parseUnits('40', 'gwei') };
const ERC20 = ['function transfer(address, uint256)', 'function approve(address, uint256)'];
const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
/** What a checked transaction burns, as core/swap/trust.ts reckons: over one place, and with an approval. */
const [MOST_GAS, MOST_PERMIT_GAS] = [77_000n, 94_000n];

forOneDatabase((name, open) =>
  describe(`orders that look first, on ${name}`, () => {
    let chain: ManualChain;
    let stack: SwapStack;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain(1, { pools: true });
    });

    after(() => chain?.close());

    beforeEach(async function () {
      this.timeout(60_000);
      await chain.reset();
      stack = await startSwapStack(await open(), chain);
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    async function mine(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    const gasOf = async (sent: TransactionResponse): Promise<bigint> =>
      (await chain.provider.getTransactionReceipt(sent.hash))!.gasUsed;
    const tokenOf = (sold: Sold, owner: Wallet): Contract => new Contract(stack.token(sold), ERC20, owner);

    /** A new account, and the gas of the token sent to it and of its approval, unless that goes with the order. */
    async function newOwner(sold: Sold, isPermit: boolean): Promise<{ owner: Wallet; setupGas: bigint }> {
      const owner = new Wallet(Wallet.createRandom().privateKey, chain.provider);
      const funding = await chain
        .tokenAs(sold, 'taker1')
        .getFunction('transfer')
        .send(owner.address, FUNDS[sold], FIRST);
      await chain.provider.send('hardhat_setBalance', [owner.address, '0x8ac7230489e80000']);
      await mine();
      if (isPermit) return { owner, setupGas: await gasOf(funding) };
      const approval = await tokenOf(sold, owner).getFunction('approve').send(PERMIT2_ADDRESS, MaxUint256, FIRST);
      await mine();
      return { owner, setupGas: (await gasOf(funding)) + (await gasOf(approval)) };
    }

    interface Order {
      owner: Wallet;
      sold: Sold;
      nonce: bigint;
    }
    /** How an order is spoilt, and the gas that it takes whoever does it. */
    type Spoil = (order: Order) => Promise<bigint>;

    const mined = async (sending: Promise<TransactionResponse>): Promise<bigint> => {
      const sent = await sending;
      await mine();
      return gasOf(sent);
    };
    const byNonce: Spoil = ({ owner, nonce }) =>
      mined(
        new Contract(PERMIT2_ADDRESS, PERMIT2, owner)
          .getFunction('invalidateUnorderedNonces')
          .send(nonce >> 8n, 1n << (nonce & 255n), FIRST),
      );
    const byTransfer: Spoil = ({ owner, sold }) =>
      mined(tokenOf(sold, owner).getFunction('transfer').send(chain.address('taker1'), FUNDS[sold], FIRST));
    const byRevoking: Spoil = ({ owner, sold }) =>
      mined(tokenOf(sold, owner).getFunction('approve').send(PERMIT2_ADDRESS, 0n, FIRST));
    const byCode: Spoil = async ({ owner }) => {
      await chain.provider.send('hardhat_setCode', [owner.address, ENDLESS]);
      await mine();
      return DELEGATION_GAS;
    };
    /** Another approval of the owner's with the same nonce at the token, which anybody submits. */
    const byTokenNonce: Spoil = async ({ owner, sold }) => {
      const terms = {
        owner: owner.address.toLowerCase() as Address,
        spender: chain.address('taker2').toLowerCase() as Address,
        nonce: 0n,
        deadlineSec: 2 ** 40,
      };
      const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: stack.token(sold) };
      const signature = owner.signingKey.sign(digestOf(permitTypedData('eip2612', domain, terms))).serialized as Hex;
      const data = permitCall('eip2612', terms, signature);
      return mined(chain.wallet('taker2').sendTransaction({ to: stack.token(sold), data, ...FIRST }));
    };
    /** Costs an approved maker nothing. */
    const byMaker: Spoil = async () => {
      await stack.keepers.order(
        chain.address('maker1'),
        [
          { side: 'ask', priceTicks: 300_000n, sizeLots: 200_000n },
          { side: 'bid', priceTicks: 200_000n, sizeLots: 200_000n },
        ],
        [1, 2],
      );
      await stack.keepers.poster.round();
      await mine();
      return 0n;
    };
    /** Asks a tick more, which is far less than orders may lose. */
    const byTick: Spoil = async () => {
      await stack.keepers.order(
        chain.address('maker1'),
        [
          { side: 'ask', priceTicks: 250_011n, sizeLots: 200_000n },
          { side: 'bid', priceTicks: 249_990n, sizeLots: 200_000n },
        ],
        [1, 2],
      );
      await stack.keepers.poster.round();
      await mine();
      return 0n;
    };
    /** Of somebody who has approved the router before. */
    const byTrade: Spoil = async () => {
      const weth = new Contract(stack.token('WETH'), ERC20, chain.wallet('taker2'));
      await mined(weth.getFunction('approve').send(chain.manifest.contracts['uniswapV3Router'], MaxUint256, FIRST));
      const trade = { tokenIn: stack.token('WETH'), tokenOut: stack.token('USDC'), amountIn: 10n ** 15n };
      return mined(sellToPool(chain, 'taker2', trade, FIRST));
    };

    interface Case {
      sold: Sold;
      isPermit?: boolean;
      isPool?: boolean;
      /** A purchase with some slippage, of an owner who keeps no more than it costs at the moment. */
      isBuy?: boolean;
    }

    /** Has a new account's order sent, spoils it before it lands, and returns what that cost either. */
    async function spoilt(
      { sold, isPermit = false, isPool = false, isBuy = false }: Case,
      spoil: Spoil,
    ): Promise<{ spentGas: bigint; burntGas: bigint; code: string | undefined }> {
      const { owner, setupGas } = await newOwner(sold, isPermit);
      const quote = await stack.quote(owner.address, {
        sellToken: stack.token(sold),
        buyToken: stack.token(sold === 'WETH' ? 'USDC' : 'WETH'),
        ...(isBuy
          ? { kind: 'buy', buyAmountAfterFee: `${FUNDS.WETH / 2n}`, slippageBps: 100 }
          : { sellAmountBeforeFee: `${FUNDS[sold]}`, slippageBps: 0 }),
        routingPreference: isPool ? 'auto' : 'onlyService',
      });
      expect(quote.route.map(({ source }) => source)).to.deep.equal([isPool ? 'uniswap-v3:500' : 'own']);
      const extra = isPermit ? { approvalSignature: await signApproval(quote, owner) } : {};
      const { status, body } = await stack.submit(quote, owner, extra);
      expect(status, JSON.stringify(body)).to.equal(200);
      if (isBuy) {
        // The most is the price and a hundredth of it, rounded down.
        const priceUnits = (BigInt(quote.quote.sellAmount) * 10_000n + 10_099n) / 10_100n;
        const rest = (await stack.balanceOf(sold, owner.address)) - priceUnits;
        await mined(tokenOf(sold, owner).getFunction('transfer').send(chain.address('taker1'), rest, FIRST));
      }
      await stack.executor.round();
      const [hash] = (await stack.order(body.orderId)).attempts.flatMap(({ txHashes }) => txHashes);
      const { serialized, data } = Transaction.from((await chain.provider.getTransaction(hash!))!);
      expect(fillIn(data as Hex).isChecked).to.equal(true);
      await chain.provider.send('hardhat_dropTransaction', [hash]);
      const nonce = BigInt(quote.permit2.typedData.message.nonce);
      const spoilGas = await spoil({ owner, sold, nonce });
      await chain.provider.send('eth_sendRawTransaction', [serialized]);
      await mine();
      const receipt = (await chain.provider.getTransactionReceipt(hash!))!;
      expect(receipt.status, 'reverted').to.equal(0);
      await stack.executor.round();
      const { attempts } = await stack.order(body.orderId);
      expect(
        attempts.filter(({ result }) => result === 'sent'),
        'once',
      ).to.have.length(1);
      const burntGas = receipt.gasUsed;
      if (process.env.LOG_LEVEL !== undefined)
        process.stdout.write(`      ${burntGas} burnt, ${setupGas} and ${spoilGas} spent\n`);
      return { spentGas: setupGas + spoilGas, burntGas, code: attempts.at(-1)?.code ?? undefined };
    }

    for (const [how, spoil] of [
      ['uses up the nonce', byNonce],
      ['empties its wallet', byTransfer],
      ['revokes the approval', byRevoking],
      ['gets code', byCode],
      ['has a maker take its quotes away', byMaker],
    ] as const) {
      for (const sold of ['WETH', 'USDC'] as const) {
        it(`cost an account that ${how} more than they burn, selling ${sold}`, async () => {
          const { spentGas, burntGas } = await spoilt({ sold }, spoil);
          expect(burntGas <= MOST_GAS && burntGas < spentGas, `${burntGas} against ${spentGas}`).to.equal(true);
        });
      }
    }

    for (const [how, spoil, helpGas] of [
      // An account without ether gets it first.
      ['uses up the nonce', byNonce, TRANSFER_GAS],
      ['empties its wallet', byTransfer, TRANSFER_GAS],
      ['uses up its nonce at the token', byTokenNonce, 0n],
      ['gets code', byCode, 0n],
      ['has a maker take its quotes away', byMaker, 0n],
    ] as const) {
      it(`cost an account that brings its approval and ${how} more than they burn`, async () => {
        const { spentGas, burntGas } = await spoilt({ sold: 'USDC', isPermit: true }, spoil);
        const what = `${burntGas} against ${spentGas} and ${helpGas}`;
        expect(burntGas <= MOST_PERMIT_GAS && burntGas < spentGas + helpGas, what).to.equal(true);
      });
    }

    for (const isPermit of [false, true]) {
      it(`burn little where an owner has what a purchase costs, and not what it costs then${isPermit ? ', with an approval' : ''}`, async () => {
        const { spentGas, burntGas } = await spoilt({ sold: 'USDC', isBuy: true, isPermit }, byTick);
        const isLittle = burntGas <= (isPermit ? MOST_PERMIT_GAS : MOST_GAS) && burntGas < spentGas;
        expect(isLittle, `${burntGas} against ${spentGas}`).to.equal(true);
      });
    }

    for (const [how, spoil] of [
      ['uses up the nonce', byNonce],
      ['empties its wallet', byTransfer],
      ['revokes the approval', byRevoking],
      ['gets code', byCode],
      ['trades ahead of it', byTrade],
    ] as const) {
      for (const sold of ['WETH', 'USDC'] as const) {
        it(`cost an account that ${how} more than they burn, over a pool, selling ${sold}`, async () => {
          await stack.keepers.order(chain.address('maker1'), [], [1, 2]);
          await stack.keepers.poster.round();
          await mine();
          const { spentGas, burntGas } = await spoilt({ sold, isPool: true }, spoil);
          expect(burntGas <= MOST_GAS && burntGas < spentGas, `${burntGas} against ${spentGas}`).to.equal(true);
        });
      }
    }
  }),
);
