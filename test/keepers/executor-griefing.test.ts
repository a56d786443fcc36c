/** Owners who sign more than they hold, or who spoil what is sent: what that costs the executor. */
import { expect } from 'chai';
import { Contract, parseUnits, toBeHex, type TransactionResponse, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { sumReverts } from '../../ledger/swaps/swap-wallets.js';
import { OrderSettler__factory } from '../../typechain-types/factories/OrderSettler__factory.js';
import type { ManualChain } from '../support/keeper-stack.js';
import { forEachSwapStack } from '../support/manual-suite.js';
import { createOwners, type ErrorAnswer, type QuoteAnswer, type SwapStack } from '../support/swap-stack.js';

const DAY_SEC = 24 * 60 * 60;
const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
/** What a new owner needs before its first order: an approval of Permit2, and tokens sent to it. */
const SETUP_GAS = 46_000n + 48_000n;
/** Returns ERC-1271's answer for a valid signature while its first word of storage is zero. */
const FICKLE = '0x5f5415631626ba7e60e01b025f5260205ff3';
/** Hashes 128 kB, for about 70,000 gas, before it answers that the signature is valid. */
const WASTEFUL = '0x620200005f2050631626ba7e60e01b5f5260205ff3';

interface Submitted {
  status: number;
  nonce: bigint;
  orderId: string | undefined;
  error: ErrorAnswer['error'] | undefined;
}

const usdc = (amount: string): bigint => parseUnits(amount, 6);

describe('orders that lean on one balance', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let token: Contract;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack, taker } = await begin());
      token = chain.tokenAs('USDC', 'taker3');
      await chain.provider.send('hardhat_setBalance', [taker.address, '0x8ac7230489e80000']);
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    /** Leaves the taker exactly so much, before the next block. */
    async function hold(units: bigint): Promise<void> {
      const held = await stack.balanceOf('USDC', taker.address);
      const isRich = held > units;
      const from = isRich ? token : chain.tokenAs('USDC', 'taker1');
      const to = isRich ? chain.address('taker1') : taker.address;
      await from.getFunction('transfer').send(to, isRich ? held - units : units - held);
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    async function submit(owner: Wallet = taker, units = usdc('500')): Promise<Submitted> {
      const quote = await quoteOf(owner, units);
      const { status, body } = await stack.submit(quote, owner);
      const { orderId, error } = body as { orderId?: string; error?: ErrorAnswer['error'] };
      return { status, orderId, error, nonce: BigInt(quote.permit2.typedData.message.nonce) };
    }

    const quoteOf = (owner: Wallet, units: bigint): Promise<QuoteAnswer> =>
      stack.quote(owner.address, {
        sellToken: stack.token('USDC'),
        buyToken: stack.token('WETH'),
        sellAmountBeforeFee: units.toString(),
      });

    /** Uses a nonce up, before what the executor sent. */
    const invalidate = (owner: Wallet, nonce: bigint): Promise<TransactionResponse> =>
      new Contract(PERMIT2_ADDRESS, PERMIT2, owner)
        .getFunction('invalidateUnorderedNonces')
        .send(nonce >> 8n, 1n << (nonce & 255n), { gasPrice: parseUnits('40', 'gwei'), gasLimit: 100_000n });

    /** What the executor sent since a block, by the chain, and the gas that went into reverts. */
    async function sentSince(block: number): Promise<{ filled: number; reverted: number; lostGas: bigint }> {
      const executor = chain.address('executor');
      const counts = { filled: 0, reverted: 0, lostGas: 0n };
      for (let at = block + 1; at <= (await chain.provider.getBlockNumber()); at++) {
        for (const hash of (await chain.provider.getBlock(at))!.transactions) {
          const receipt = (await chain.provider.getTransactionReceipt(hash))!;
          if (receipt.from.toLowerCase() !== executor) continue;
          counts[receipt.status === 1 ? 'filled' : 'reverted'] += 1;
          if (receipt.status !== 1) counts.lostGas += receipt.gasUsed;
        }
      }
      return counts;
    }

    it('sends none that the wallet does not cover, while it is refilled as it empties', async () => {
      const orders = [];
      for (let i = 0; i < 40; i++) orders.push((await submit()).orderId!);
      await hold(usdc('500'));
      const start = await chain.provider.getBlockNumber();
      for (let i = 0; i < 8; i++) {
        await stack.land();
        await hold(usdc('500'));
      }
      expect(await sentSince(start)).to.deep.equal({ filled: 8, reverted: 0, lostGas: 0n });
      const states = await Promise.all(orders.map((id) => stack.order(id)));
      expect(states.filter(({ status }) => status === 'filled')).to.have.length(8);
      const settler = OrderSettler__factory.connect(chain.manifest.contracts['orderSettler']!, chain.provider);
      expect(await settler.queryFilter(settler.filters.OrderFilled(taker.address))).to.have.length(8);
    });

    it('accepts as many as balance and allowance cover together, however many come at once', async () => {
      await hold(usdc('1200'));
      const quotes = await Promise.all(Array.from({ length: 6 }, () => quoteOf(taker, usdc('500'))));
      const answers = await Promise.all(quotes.map((quote) => stack.submit(quote, taker)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 200, 400, 400, 400, 400]);
      const refused = answers.find(({ status }) => status === 400)!.body as unknown as ErrorAnswer;
      expect(refused.error.code).to.equal('BAD_REQUEST');
      expect(refused.error.message).to.match(
        /holds 1200000000 .* takes 500000000, and 2 pending orders take 1000000000$/,
      );
      // What the chain has executed is no longer owed, whether the ledger has scanned it or not.
      await stack.executor.round();
      await chain.mine();
      expect((await submit(taker, usdc('200'))).status).to.equal(200);
      expect((await submit(taker, usdc('1'))).status).to.equal(400);
      await stack.keepers.watcher.scan();
      await token.getFunction('approve').send(PERMIT2_ADDRESS, usdc('700'));
      await hold(usdc('5000'));
      expect((await submit(taker, usdc('1'))).error?.message).to.match(
        /Permit2 .* to take 700000000 .* takes 1000000, and 2 pending orders take 700000000 at most/,
      );
    });

    it('frees what a cancelled order was to take', async () => {
      await hold(usdc('500'));
      const { nonce } = await submit();
      expect((await submit()).status).to.equal(400);
      await invalidate(taker, nonce);
      await chain.mine();
      expect((await submit()).status).to.equal(200);
    });

    it('sends an owner who spoils what was sent no more than costs him more, however long he waits', async () => {
      const [griefer] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const start = await chain.provider.getBlockNumber();
      let spent = SETUP_GAS;
      let sent = 0;
      /** Signs an order, has it sent if the executor does, and uses its nonce up before it lands. */
      async function spoil(): Promise<boolean> {
        const { orderId, nonce } = await submit(griefer);
        await stack.executor.round();
        const { attempts, reason } = await stack.order(orderId!);
        const isSent = attempts.some(({ result }) => result === 'sent');
        expect(reason?.code ?? null).to.equal(isSent ? null : 'TOO_MANY_REVERTS');
        const spoiling = await invalidate(griefer, nonce);
        await chain.mine();
        await stack.keepers.watcher.scan();
        if (isSent) spent += (await spoiling.wait())!.gasUsed;
        if (isSent) sent += 1;
        const { filled, reverted, lostGas } = await sentSince(start);
        expect([filled, reverted]).to.deep.equal([0, sent]);
        expect(spent > lostGas, `${spent} against ${lostGas}`).to.equal(true);
        await stack.restartExecutor();
        return isSent;
      }
      async function swapByHimself(): Promise<void> {
        const tokens = [stack.token('USDC'), stack.token('WETH')] as const;
        const entrypoint = chain.entrypointAs('taker1').connect(griefer);
        await chain
          .tokenAs('USDC', 'taker1')
          .connect(griefer)
          .getFunction('approve')
          .send(entrypoint.target, usdc('1'));
        await chain.mine();
        const swap = await entrypoint.swap(...tokens, usdc('1'), 0n, griefer.address, 2n ** 40n, {
          gasLimit: 500_000n,
        });
        await chain.mine();
        await stack.keepers.watcher.scan();
        spent += (await swap.wait())!.gasUsed;
      }

      expect([await spoil(), await spoil(), await spoil()]).to.deep.equal([true, true, false]);
      stack.advance(DAY_SEC * 1_000);
      await chain.provider.send('evm_increaseTime', [DAY_SEC]);
      await stack.makeMarket();
      expect(await spoil(), 'a day later').to.equal(false);
      await swapByHimself();
      expect([await spoil(), await spoil()], 'after a swap of his own').to.deep.equal([true, false]);
      expect((await sumReverts(stack.db.knex, 0)).count).to.equal(3);
      await swapByHimself();
      const { orderId } = await submit(griefer);
      await stack.land();
      expect((await stack.order(orderId!)).status).to.equal('filled');
      // The fee of a fill pays for two.
      spent += 160_000n;
      const filledAt = await chain.provider.getBlockNumber();
      for (const isSent of [true, true, false]) {
        const one = await submit(griefer);
        await stack.executor.round();
        const { attempts } = await stack.order(one.orderId!);
        expect(attempts.some(({ result }) => result === 'sent')).to.equal(isSent);
        await invalidate(griefer, one.nonce);
        await chain.mine();
        await stack.keepers.watcher.scan();
      }
      const { lostGas } = await sentSince(filledAt);
      expect(lostGas < 160_000n, String(lostGas)).to.equal(true);
    });

    it('pays for no more gas of an account with code than its fee has paid for', async () => {
      const [griefer] = await createOwners(chain, 'USDC', 1, usdc('1000'));
      const quote = await quoteOf(griefer!, usdc('500'));
      await chain.provider.send('hardhat_setCode', [griefer!.address, WASTEFUL]);
      const { orderId } = (await stack.submit(quote, griefer!)).body;
      await stack.executor.round();
      expect((await stack.order(orderId)).reason?.code).to.equal('TOO_MUCH_GAS');
    });

    it('sends one transaction for an account whose code answers otherwise to it than to the simulation', async () => {
      const [griefer] = await createOwners(chain, 'USDC', 1, usdc('1000'));
      await chain.provider.send('hardhat_setCode', [griefer!.address, FICKLE]);
      const flip = (to: bigint) =>
        chain.provider.send('hardhat_setStorageAt', [griefer!.address, '0x0', toBeHex(to, 32)]);
      const start = await chain.provider.getBlockNumber();
      const orders = [await submit(griefer), await submit(griefer)];
      for (let i = 0; i < 3; i++) {
        await stack.executor.round();
        await flip(1n);
        await chain.mine();
        await flip(0n);
        await stack.keepers.watcher.scan();
      }
      expect((await sentSince(start)).reverted).to.equal(1);
      for (const { orderId } of orders) {
        expect((await stack.order(orderId!)).reason?.code).to.equal('TOO_MANY_REVERTS');
      }
    });
  });
});
