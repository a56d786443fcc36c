/** Owners who sign more than they hold, or who spoil what is sent: what that costs the executor. */
import { expect } from 'chai';
import { Transaction, toBeHex, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { readUndecidedSales, sumReverts } from '../../../ledger/swaps/swap-wallets.js';
import type { Hex } from '../../../core/types.js';
import { OrderSettler__factory } from '../../../typechain-types/factories/OrderSettler__factory.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type ErrorAnswer } from '../../support/swap-stack.js';
import { leaningOrders, SETUP_GAS, FICKLE, usdc } from '../../support/worlds/leaning-orders.js';

const DAY_SEC = 24 * 60 * 60;

describe('orders that lean on one balance', () => {
  forEachSwapStack((begin) => {
    const suite = leaningOrders(begin);
    const {
      submit,
      quoteOf,
      invalidate,
      allowSwaps,
      sendSwap,
      swapOf,
      sentSince,
      sentAndSpoilt,
      ownerOfBoth,
      submitWeth,
    } = suite;

    /** Leaves the taker exactly so much, before the next block. */
    async function hold(units: bigint): Promise<void> {
      const held = await suite.stack.balanceOf('USDC', suite.taker.address);
      const isRich = held > units;
      const from = isRich ? suite.token : suite.chain.tokenAs('USDC', 'taker1');
      const to = isRich ? suite.chain.address('taker1') : suite.taker.address;
      await from.getFunction('transfer').send(to, isRich ? held - units : units - held);
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
    }

    it('sends none that the wallet does not cover, while it is refilled as it empties', async () => {
      const orders = [];
      for (let i = 0; i < 40; i++) orders.push((await submit()).orderId!);
      await hold(usdc('500'));
      const start = await suite.chain.provider.getBlockNumber();
      for (let i = 0; i < 8; i++) {
        await suite.stack.land();
        await hold(usdc('500'));
      }
      expect(await sentSince(start)).to.deep.equal({ filled: 8, reverted: 0, lostGas: 0n });
      const states = await Promise.all(orders.map((id) => suite.stack.order(id)));
      expect(states.filter(({ status }) => status === 'filled')).to.have.length(8);
      const settler = OrderSettler__factory.connect(
        suite.chain.manifest.contracts['orderSettler']!,
        suite.chain.provider,
      );
      expect(await settler.queryFilter(settler.filters.OrderFilled(suite.taker.address))).to.have.length(8);
    });

    it('accepts as many as balance and allowance cover together, however many come at once', async () => {
      await hold(usdc('1200'));
      const quotes = await Promise.all(Array.from({ length: 6 }, () => quoteOf(suite.taker, usdc('500'))));
      const answers = await Promise.all(quotes.map((quote) => suite.stack.submit(quote, suite.taker)));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 200, 400, 400, 400, 400]);
      const refused = answers.find(({ status }) => status === 400)!.body as unknown as ErrorAnswer;
      expect(refused.error.code).to.equal('BAD_REQUEST');
      expect(refused.error.message).to.match(
        /holds 1200000000 .* takes 500000000, and 2 pending orders take 1000000000$/,
      );
      // What the chain has executed is no longer owed, whether the ledger has scanned it or not.
      await suite.stack.executor.round();
      await suite.chain.mine();
      expect((await submit(suite.taker, usdc('200'))).status).to.equal(200);
      expect((await submit(suite.taker, usdc('1'))).status).to.equal(400);
      await suite.stack.keepers.watcher.scan();
      await suite.token.getFunction('approve').send(PERMIT2_ADDRESS, usdc('700'));
      await hold(usdc('5000'));
      expect((await submit(suite.taker, usdc('1'))).error?.message).to.match(
        /Permit2 .* to take 700000000 .* takes 1000000, and 2 pending orders take 700000000 at most/,
      );
    });

    it('frees what a cancelled order was to take', async () => {
      await hold(usdc('500'));
      const { nonce } = await submit();
      expect((await submit()).status).to.equal(400);
      await invalidate(suite.taker, nonce);
      await suite.chain.mine();
      expect((await submit()).status).to.equal(200);
    });

    it('sends an owner who spoils what was sent no more than costs him more, however long he waits', async () => {
      const [griefer] = (await createOwners(suite.chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const start = await suite.chain.provider.getBlockNumber();
      let spent = SETUP_GAS;
      let sent = 0;
      /** Signs an order, has it sent if the executor does, and uses its nonce up before it lands. */
      async function spoil(): Promise<boolean> {
        const { orderId, nonce } = await submit(griefer);
        await suite.stack.executor.round();
        const { attempts, reason } = await suite.stack.order(orderId!);
        const isSent = attempts.some(({ result }) => result === 'sent');
        expect(reason?.code ?? null).to.equal(isSent ? null : 'TOO_MANY_REVERTS');
        const spoiling = await invalidate(griefer, nonce);
        await suite.chain.mine();
        await suite.stack.keepers.watcher.scan();
        if (isSent) spent += (await spoiling.wait())!.gasUsed;
        if (isSent) sent += 1;
        const { filled, reverted, lostGas } = await sentSince(start);
        expect([filled, reverted]).to.deep.equal([0, sent]);
        expect(spent > lostGas, `${spent} against ${lostGas}`).to.equal(true);
        await suite.stack.restartExecutor();
        return isSent;
      }
      const swapByHimself = async (): Promise<void> => void (spent += await swapOf(griefer));

      expect([await spoil(), await spoil()]).to.deep.equal([true, false]);
      suite.stack.advance(DAY_SEC * 1_000);
      await suite.chain.provider.send('evm_increaseTime', [DAY_SEC]);
      await suite.stack.makeMarket();
      expect(await spoil(), 'a day later').to.equal(false);
      await swapByHimself();
      expect([await spoil(), await spoil()], 'after a swap of his own').to.deep.equal([true, false]);
      expect((await sumReverts(suite.stack.db.knex, 0)).count).to.equal(2);
      await swapByHimself();
      const { orderId } = await submit(griefer);
      await suite.stack.land();
      expect((await suite.stack.order(orderId!)).status).to.equal('filled');
      // The fee of a fill pays for two.
      spent += 160_000n;
      const filledAt = await suite.chain.provider.getBlockNumber();
      for (const isSent of [true, true, false]) {
        const one = await submit(griefer);
        await suite.stack.executor.round();
        const { attempts } = await suite.stack.order(one.orderId!);
        expect(attempts.some(({ result }) => result === 'sent')).to.equal(isSent);
        await invalidate(griefer, one.nonce);
        await suite.chain.mine();
        await suite.stack.keepers.watcher.scan();
      }
      const { lostGas } = await sentSince(filledAt);
      expect(lostGas < 160_000n, String(lostGas)).to.equal(true);
    });

    it('holds a revert against its owner that was sent under a key which is not in use any more', async () => {
      const [griefer] = (await createOwners(suite.chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const { nonce } = await submit(griefer);
      await suite.stack.executor.round();
      await suite.stack.restartExecutor({ privateKey: suite.chain.wallet('taker2').privateKey as Hex });
      await invalidate(griefer, nonce);
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      await suite.stack.executor.round();
      expect((await sumReverts(suite.stack.db.knex, 0)).count).to.equal(1);
      expect(await readUndecidedSales(suite.stack.db.knex)).to.deep.equal([]);
    });

    it('loses less by a maker who takes its quotes away than the accounts cost whose orders it spoils', async () => {
      const maker = suite.chain.address('maker1');
      /** Of its order to sell, which the market was made with. */
      let oids = [1];
      const quoteAt = async (priceTicks: bigint): Promise<void> => {
        oids = await suite.stack.keepers.order(maker, [{ side: 'ask', priceTicks, sizeLots: 200_000n }], oids);
        await suite.stack.keepers.poster.round();
      };
      /** Has an order sent if the executor does, and a dearer curve land ahead of it. */
      async function pullFrom(owner: Wallet): Promise<boolean> {
        const { orderId } = await submit(owner);
        await suite.stack.executor.round();
        const hash = (await suite.stack.order(orderId!)).attempts.find(({ result }) => result === 'sent')?.txHashes[0];
        const sent = hash === undefined ? null : Transaction.from((await suite.chain.provider.getTransaction(hash))!);
        if (sent !== null) await suite.chain.provider.send('hardhat_dropTransaction', [hash]);
        await quoteAt(300_000n);
        if (sent !== null) await suite.chain.provider.send('eth_sendRawTransaction', [sent.serialized]);
        await suite.chain.mine();
        await suite.stack.keepers.watcher.scan();
        await quoteAt(250_010n);
        await suite.chain.mine();
        await suite.stack.keepers.watcher.scan();
        await suite.stack.executor.round();
        return sent !== null;
      }

      const start = await suite.chain.provider.getBlockNumber();
      const griefers = await createOwners(suite.chain, 'USDC', 3, usdc('5000'));
      let spent = 0n;
      for (const griefer of griefers) {
        spent += SETUP_GAS;
        expect([await pullFrom(griefer), await pullFrom(griefer)]).to.deep.equal([true, false]);
      }
      const { filled, reverted, lostGas } = await sentSince(start);
      expect([filled, reverted]).to.deep.equal([0, 3]);
      expect(lostGas < spent, `${lostGas} against ${spent}`).to.equal(true);
    });

    it('holds a revert against its owner, though another address swaps dust ahead of it in the same block', async () => {
      const [byKey, byCode, helper] = (await createOwners(suite.chain, 'USDC', 3, usdc('5000'))) as [
        Wallet,
        Wallet,
        Wallet,
      ];
      await swapOf(byCode);
      await swapOf(byCode);
      await suite.chain.provider.send('hardhat_setCode', [byCode.address, FICKLE]);
      await allowSwaps(helper, usdc('10'));
      const flip = (to: bigint) =>
        suite.chain.provider.send('hardhat_setStorageAt', [byCode.address, '0x0', toBeHex(to, 32)]);
      const start = await suite.chain.provider.getBlockNumber();

      const sent = [await submit(byKey), await submit(byCode)];
      await suite.stack.executor.round();
      await flip(1n);
      await invalidate(byKey, sent[0]!.nonce);
      const dust = [await sendSwap(helper), await sendSwap(helper)];
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      await flip(0n);
      const { blockNumber } = (await dust[1]!.wait())!;
      expect((await sentSince(blockNumber - 1)).reverted, 'in the block of the dust').to.equal(2);

      const later = [await submit(byKey), await submit(byCode)];
      for (let i = 0; i < 2; i++) await suite.stack.land();
      expect(await sentSince(start)).to.deep.include({ filled: 0, reverted: 2 });
      for (const { orderId } of later) {
        expect((await suite.stack.order(orderId!)).reason?.code).to.equal('TOO_MANY_REVERTS');
      }
    });

    it('holds a mined revert against the owner of whichever of its orders comes first', async () => {
      const griefer = await ownerOfBoth();
      const start = await suite.chain.provider.getBlockNumber();
      // Older than the order that reverts, so that its turn comes first; the market does not give what it asks for until then.
      const earlier = await submitWeth(griefer);
      await suite.stack.keepers.order(
        suite.chain.address('maker1'),
        [{ side: 'bid', priceTicks: 200_000n, sizeLots: 10n }],
        [2],
      );
      await suite.stack.keepers.poster.round();
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      const land = await sentAndSpoilt(griefer);
      await land();
      await suite.stack.keepers.order(
        suite.chain.address('maker1'),
        [{ side: 'bid', priceTicks: 249_990n, sizeLots: 200_000n }],
        [3],
      );
      await suite.stack.keepers.poster.round();
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      await suite.stack.restartExecutor();
      for (let i = 0; i < 2; i++) await suite.stack.land();
      expect(await sentSince(start)).to.deep.include({ filled: 0, reverted: 1 });
      expect((await suite.stack.order(earlier)).reason?.code).to.equal('TOO_MANY_REVERTS');
    });
  });
});
