/** Owners who sign more than they hold, or who spoil what is sent: what that costs the executor. */
import { expect } from 'chai';
import { Contract, Transaction, parseUnits, toBeHex, type TransactionResponse, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { readUndecidedSales, sumReverts } from '../../../ledger/swaps/swap-wallets.js';
import type { Hex } from '../../../core/types.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import type { Outbox } from '../../../keepers/chain/outbox.js';
import type { ExecutorDeps } from '../../../keepers/executor/deps.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type ErrorAnswer, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const DAY_SEC = 24 * 60 * 60;
const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
/** What a new owner needs before its first order: an approval of Permit2, and tokens sent to it. */
const SETUP_GAS = 46_000n + 48_000n;
/** Returns ERC-1271's answer for a valid signature while its first word of storage is zero. */
const FICKLE = '0x5f5415631626ba7e60e01b025f5260205ff3';
/** Hashes 128 kB, for about 70,000 gas, before it answers that the signature is valid. */
const WASTEFUL = '0x620200005f2050631626ba7e60e01b5f5260205ff3';

/** What the executor does is its own: another server may quote more. */
const GENEROUS = { maxReverts: 1_000, newAccountGas: 10_000_000n, newContractGas: 10_000_000n };

/** Runs until its gas is used up. */
const ENDLESS = '0x5b5f56';

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
      ({ chain, stack, taker } = await begin(GENEROUS));
      await furnish();
    });

    /** Begins anew with another executor. */
    async function beginAgain(executor: Partial<ExecutorDeps>): Promise<void> {
      await stack.stop();
      ({ chain, stack, taker } = await begin(GENEROUS, executor));
      await furnish();
    }

    async function furnish(): Promise<void> {
      token = chain.tokenAs('USDC', 'taker3');
      await chain.provider.send('hardhat_setBalance', [taker.address, '0x8ac7230489e80000']);
      await stack.makeMarket();
    }

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

    /** Lets an owner's swaps take so much. */
    async function allowSwaps(owner: Wallet, units: bigint): Promise<void> {
      const approval = chain.tokenAs('USDC', 'taker1').connect(owner).getFunction('approve');
      await approval.send(chain.entrypointAs('taker1').target, units);
      await chain.mine();
    }

    /** A swap of dust that is not in a block yet. */
    function sendSwap(owner: Wallet): Promise<TransactionResponse> {
      const tokens = [stack.token('USDC'), stack.token('WETH')] as const;
      const terms = { gasLimit: 500_000n, gasPrice: parseUnits('40', 'gwei') };
      return chain
        .entrypointAs('taker1')
        .connect(owner)
        .swap(...tokens, usdc('1'), 0n, owner.address, 2n ** 40n, terms);
    }

    /** A swap that an owner sends; returns the gas that it took. */
    async function swapOf(owner: Wallet): Promise<bigint> {
      await allowSwaps(owner, usdc('1'));
      const swap = await sendSwap(owner);
      await chain.mine();
      await stack.keepers.watcher.scan();
      return (await swap.wait())!.gasUsed;
    }

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
      const swapByHimself = async (): Promise<void> => void (spent += await swapOf(griefer));

      expect([await spoil(), await spoil()]).to.deep.equal([true, false]);
      stack.advance(DAY_SEC * 1_000);
      await chain.provider.send('evm_increaseTime', [DAY_SEC]);
      await stack.makeMarket();
      expect(await spoil(), 'a day later').to.equal(false);
      await swapByHimself();
      expect([await spoil(), await spoil()], 'after a swap of his own').to.deep.equal([true, false]);
      expect((await sumReverts(stack.db.knex, 0)).count).to.equal(2);
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

    it('holds a revert against its owner that was sent under a key which is not in use any more', async () => {
      const [griefer] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const { nonce } = await submit(griefer);
      await stack.executor.round();
      await stack.restartExecutor({ privateKey: chain.wallet('taker2').privateKey as Hex });
      await invalidate(griefer, nonce);
      await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.executor.round();
      expect((await sumReverts(stack.db.knex, 0)).count).to.equal(1);
      expect(await readUndecidedSales(stack.db.knex)).to.deep.equal([]);
    });

    it('loses less by a maker who takes its quotes away than the accounts cost whose orders it spoils', async () => {
      const maker = chain.address('maker1');
      /** Of its order to sell, which the market was made with. */
      let oids = [1];
      const quoteAt = async (priceTicks: bigint): Promise<void> => {
        oids = await stack.keepers.order(maker, [{ side: 'ask', priceTicks, sizeLots: 200_000n }], oids);
        await stack.keepers.poster.round();
      };
      /** Has an order sent if the executor does, and a dearer curve land ahead of it. */
      async function pullFrom(owner: Wallet): Promise<boolean> {
        const { orderId } = await submit(owner);
        await stack.executor.round();
        const hash = (await stack.order(orderId!)).attempts.find(({ result }) => result === 'sent')?.txHashes[0];
        const sent = hash === undefined ? null : Transaction.from((await chain.provider.getTransaction(hash))!);
        if (sent !== null) await chain.provider.send('hardhat_dropTransaction', [hash]);
        await quoteAt(300_000n);
        if (sent !== null) await chain.provider.send('eth_sendRawTransaction', [sent.serialized]);
        await chain.mine();
        await stack.keepers.watcher.scan();
        await quoteAt(250_010n);
        await chain.mine();
        await stack.keepers.watcher.scan();
        await stack.executor.round();
        return sent !== null;
      }

      const start = await chain.provider.getBlockNumber();
      const griefers = await createOwners(chain, 'USDC', 3, usdc('5000'));
      let spent = 0n;
      for (const griefer of griefers) {
        spent += SETUP_GAS;
        expect([await pullFrom(griefer), await pullFrom(griefer)]).to.deep.equal([true, false]);
      }
      const { filled, reverted, lostGas } = await sentSince(start);
      expect([filled, reverted]).to.deep.equal([0, 3]);
      expect(lostGas < spent, `${lostGas} against ${spent}`).to.equal(true);
    });

    it('pays for no more gas of an account with code than its fee has paid for', async () => {
      await beginAgain({ newContractGas: 400_000n });
      const [griefer] = await createOwners(chain, 'USDC', 1, usdc('1000'));
      const quote = await quoteOf(griefer!, usdc('500'));
      await chain.provider.send('hardhat_setCode', [griefer!.address, WASTEFUL]);
      const { orderId } = (await stack.submit(quote, griefer!)).body;
      await stack.executor.round();
      expect((await stack.order(orderId)).reason?.code).to.equal('TOO_MUCH_GAS');
    });

    it('sends nothing for an account with code that has spent less than its code can burn', async () => {
      const [griefer] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      await chain.provider.send('hardhat_setCode', [griefer.address, FICKLE]);
      const start = await chain.provider.getBlockNumber();
      const { orderId } = await submit(griefer);
      await stack.land();
      expect((await stack.order(orderId!)).reason?.code).to.equal('UNPROVEN_ACCOUNT');
      expect((await sentSince(start)).reverted).to.equal(0);

      await chain.provider.send('hardhat_setCode', [griefer.address, '0x']);
      const spent = (await swapOf(griefer)) + (await swapOf(griefer));
      await chain.provider.send('hardhat_setCode', [griefer.address, FICKLE]);
      const second = await submit(griefer);
      await stack.executor.round();
      await chain.provider.send('hardhat_setStorageAt', [griefer.address, '0x0', toBeHex(1, 32)]);
      await chain.mine();
      await stack.keepers.watcher.scan();
      await chain.provider.send('hardhat_setStorageAt', [griefer.address, '0x0', toBeHex(0, 32)]);
      await stack.land();
      const { reverted, lostGas } = await sentSince(start);
      expect(reverted).to.equal(1);
      expect(lostGas < spent + SETUP_GAS, `${lostGas} against ${spent}`).to.equal(true);
      expect((await stack.order(second.orderId!)).reason?.code).to.equal('TOO_MANY_REVERTS');
    });

    it('holds a revert against its owner, though another address swaps dust ahead of it in the same block', async () => {
      const [byKey, byCode, helper] = (await createOwners(chain, 'USDC', 3, usdc('5000'))) as [Wallet, Wallet, Wallet];
      await swapOf(byCode);
      await swapOf(byCode);
      await chain.provider.send('hardhat_setCode', [byCode.address, FICKLE]);
      await allowSwaps(helper, usdc('10'));
      const flip = (to: bigint) =>
        chain.provider.send('hardhat_setStorageAt', [byCode.address, '0x0', toBeHex(to, 32)]);
      const start = await chain.provider.getBlockNumber();

      const sent = [await submit(byKey), await submit(byCode)];
      await stack.executor.round();
      await flip(1n);
      await invalidate(byKey, sent[0]!.nonce);
      const dust = [await sendSwap(helper), await sendSwap(helper)];
      await chain.mine();
      await stack.keepers.watcher.scan();
      await flip(0n);
      const { blockNumber } = (await dust[1]!.wait())!;
      expect((await sentSince(blockNumber - 1)).reverted, 'in the block of the dust').to.equal(2);

      const later = [await submit(byKey), await submit(byCode)];
      for (let i = 0; i < 2; i++) await stack.land();
      expect(await sentSince(start)).to.deep.include({ filled: 0, reverted: 2 });
      for (const { orderId } of later) {
        expect((await stack.order(orderId!)).reason?.code).to.equal('TOO_MANY_REVERTS');
      }
    });

    /** Has an order sent whose transaction is kept back; returns what lets it be mined as a revert. */
    async function sentAndSpoilt(owner: Wallet): Promise<() => Promise<void>> {
      const { orderId, nonce } = await submit(owner);
      await stack.executor.round();
      const hash = (await stack.order(orderId!)).attempts.find(({ result }) => result === 'sent')!.txHashes[0]!;
      const { serialized } = Transaction.from((await chain.provider.getTransaction(hash))!);
      await chain.provider.send('hardhat_dropTransaction', [hash]);
      return async () => {
        await invalidate(owner, nonce);
        await chain.mine();
        await chain.provider.send('eth_sendRawTransaction', [serialized]);
        await chain.mine();
        await stack.keepers.watcher.scan();
      };
    }

    /** An owner who has also WETH, of which Permit2 may take all. */
    async function ownerOfBoth(): Promise<Wallet> {
      const [owner] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const weth = chain.tokenAs('WETH', 'taker1');
      await weth.getFunction('transfer').send(owner.address, parseUnits('1', 18));
      await (weth.connect(owner) as Contract).getFunction('approve').send(PERMIT2_ADDRESS, parseUnits('1', 18));
      await chain.mine();
      return owner;
    }

    const submitWeth = async (owner: Wallet): Promise<string> => {
      const quote = await stack.quote(owner.address, { sellAmountBeforeFee: parseUnits('0.2', 18).toString() });
      return (await stack.submit(quote, owner)).body.orderId;
    };

    it('holds a mined revert against the owner of whichever of its orders comes first', async () => {
      const griefer = await ownerOfBoth();
      const start = await chain.provider.getBlockNumber();
      // Older than the order that reverts, so that its turn comes first; the market does not give what it asks for until then.
      const earlier = await submitWeth(griefer);
      await stack.keepers.order(chain.address('maker1'), [{ side: 'bid', priceTicks: 200_000n, sizeLots: 10n }], [2]);
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
      const land = await sentAndSpoilt(griefer);
      await land();
      await stack.keepers.order(
        chain.address('maker1'),
        [{ side: 'bid', priceTicks: 249_990n, sizeLots: 200_000n }],
        [3],
      );
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.restartExecutor();
      for (let i = 0; i < 2; i++) await stack.land();
      expect(await sentSince(start)).to.deep.include({ filled: 0, reverted: 1 });
      expect((await stack.order(earlier)).reason?.code).to.equal('TOO_MANY_REVERTS');
    });

    it('counts a transaction as under way though its order has expired, until it is known what became of it', async () => {
      const griefer = await ownerOfBoth();
      const start = await chain.provider.getBlockNumber();
      const land = await sentAndSpoilt(griefer);
      stack.advance(130_000);
      await chain.provider.send('evm_increaseTime', [130]);
      await chain.provider.send('evm_mine', []);
      await stack.keepers.watcher.scan();
      await stack.makeMarket();
      const wrap = { outbox: (outbox: Outbox): Outbox => ({ ...outbox, resume: () => Promise.resolve() }) };
      await stack.restartExecutor(wrap);
      await stack.executor.round();
      expect((await stack.keepers.db.knex('swap_outcomes').select('status')).map(({ status }) => status)).to.deep.equal(
        ['expired'],
      );
      const second = await submitWeth(griefer);
      await stack.executor.round();
      expect((await stack.order(second)).attempts, 'the first may still revert').to.deep.equal([]);
      await land();
      await stack.restartExecutor();
      await stack.land();
      expect((await stack.order(second)).reason?.code).to.equal('TOO_MANY_REVERTS');
      expect(await sentSince(start)).to.deep.include({ filled: 0, reverted: 1 });
    });

    it('loses less than an account costs by code that appears while its transaction is under way', async () => {
      const [griefer] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const start = await chain.provider.getBlockNumber();
      await submit(griefer);
      await stack.executor.round();
      await chain.provider.send('hardhat_setCode', [griefer.address, ENDLESS]);
      await chain.mine();
      await stack.keepers.watcher.scan();
      const { reverted, lostGas } = await sentSince(start);
      expect(reverted).to.equal(1);
      // The delegation costs 34k to 46k beside.
      expect(lostGas < SETUP_GAS, String(lostGas)).to.equal(true);
      await chain.provider.send('hardhat_setCode', [griefer.address, '0x']);
      let spent = 0n;
      // What was burnt is made up for before anything is sent again, as far as a transaction may burn it.
      while (spent + SETUP_GAS < lostGas + 77_000n) {
        const { orderId } = await submit(griefer, usdc('10'));
        await stack.land();
        const { status, reason } = await stack.order(orderId!);
        expect([status, reason?.code]).to.deep.equal(['pending', 'TOO_MANY_REVERTS']);
        await swapOf(griefer);
        spent += 96_000n;
      }
      await stack.land();
      expect((await sentSince(start)).filled > 0).to.equal(true);
    });

    it('adds up what everything under way for an owner could burn', async () => {
      const credit = 380_000n;
      await beginAgain({ newContractGas: credit });
      const [griefer] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const weth = chain.tokenAs('WETH', 'taker1');
      await weth.getFunction('transfer').send(griefer.address, parseUnits('1', 18));
      const own = weth.connect(griefer) as Contract;
      await own.getFunction('approve').send(PERMIT2_ADDRESS, parseUnits('1', 18));
      await chain.mine();
      const start = await chain.provider.getBlockNumber();

      await chain.provider.send('hardhat_setCode', [griefer.address, WASTEFUL]);
      const dear = await submit(griefer);
      await stack.executor.round();
      await chain.provider.send('hardhat_setCode', [griefer.address, FICKLE]);
      const quote = await stack.quote(griefer.address, { sellAmountBeforeFee: parseUnits('0.2', 18).toString() });
      const { orderId } = (await stack.submit(quote, griefer)).body;
      await stack.restartExecutor();
      await stack.executor.round();
      const hashOf = async (id: string) =>
        (await stack.order(id)).attempts.find(({ result }) => result === 'sent')?.txHashes[0];
      const first = (await chain.provider.getTransaction((await hashOf(dear.orderId!))!))!;
      expect(await hashOf(orderId), 'while the dear one is under way').to.equal(undefined);

      await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.executor.round();
      const second = (await chain.provider.getTransaction((await hashOf(orderId))!))!;
      // The credit covers the second one twice, but not both.
      expect(2n * second.gasLimit <= credit, String(second.gasLimit)).to.equal(true);
      expect(first.gasLimit + second.gasLimit > credit, String(first.gasLimit)).to.equal(true);
      await stack.land();
      expect((await sentSince(start)).filled).to.equal(2);
    });

    it('sends one transaction for an account whose code answers otherwise to it than to the simulation', async () => {
      await beginAgain({ newContractGas: 250_000n });
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
