/** Owners with code, and transactions under way: nobody burns more gas than it has paid for. */
import { expect } from 'chai';
import { parseUnits, toBeHex, type Contract, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import type { Outbox } from '../../../keepers/chain/outbox.js';
import { Together__factory } from '../../../typechain-types/factories/mocks/Together__factory.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners } from '../../support/swap-stack.js';
import { leaningOrders, SETUP_GAS, FICKLE, usdc } from '../../support/worlds/leaning-orders.js';

/** Hashes 128 kB, for about 70,000 gas, before it answers that the signature is valid. */
const WASTEFUL = '0x620200005f2050631626ba7e60e01b5f5260205ff3';

/** Runs until its gas is used up. */
const ENDLESS = '0x5b5f56';

describe('orders that lean on one balance', () => {
  forEachSwapStack((begin) => {
    const suite = leaningOrders(begin);
    const { beginAgain, submit, quoteOf, swapOf, sentSince, sentAndSpoilt, ownerOfBoth, submitWeth } = suite;

    it('pays for no more gas of an account with code than its fee has paid for', async () => {
      await beginAgain({ newContractGas: 400_000n });
      const [griefer] = await createOwners(suite.chain, 'USDC', 1, usdc('1000'));
      const quote = await quoteOf(griefer!, usdc('500'));
      await suite.chain.provider.send('hardhat_setCode', [griefer!.address, WASTEFUL]);
      const { orderId } = (await suite.stack.submit(quote, griefer!)).body;
      await suite.stack.executor.round();
      expect((await suite.stack.order(orderId)).reason?.code).to.equal('TOO_MUCH_GAS');
    });

    it('sends nothing for an account with code that has spent less than its code can burn', async () => {
      const [griefer] = (await createOwners(suite.chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      await suite.chain.provider.send('hardhat_setCode', [griefer.address, FICKLE]);
      const start = await suite.chain.provider.getBlockNumber();
      const { orderId } = await submit(griefer);
      await suite.stack.land();
      expect((await suite.stack.order(orderId!)).reason?.code).to.equal('UNPROVEN_ACCOUNT');
      expect((await sentSince(start)).reverted).to.equal(0);

      await suite.chain.provider.send('hardhat_setCode', [griefer.address, '0x']);
      const spent = (await swapOf(griefer)) + (await swapOf(griefer));
      await suite.chain.provider.send('hardhat_setCode', [griefer.address, FICKLE]);
      const second = await submit(griefer);
      await suite.stack.executor.round();
      await suite.chain.provider.send('hardhat_setStorageAt', [griefer.address, '0x0', toBeHex(1, 32)]);
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      await suite.chain.provider.send('hardhat_setStorageAt', [griefer.address, '0x0', toBeHex(0, 32)]);
      await suite.stack.land();
      const { reverted, lostGas } = await sentSince(start);
      expect(reverted).to.equal(1);
      expect(lostGas < spent + SETUP_GAS, `${lostGas} against ${spent}`).to.equal(true);
      expect((await suite.stack.order(second.orderId!)).reason?.code).to.equal('TOO_MANY_REVERTS');
    });

    it('counts a transaction as under way though its order has expired, until it is known what became of it', async () => {
      const griefer = await ownerOfBoth();
      const start = await suite.chain.provider.getBlockNumber();
      const land = await sentAndSpoilt(griefer);
      suite.stack.advance(130_000);
      await suite.chain.provider.send('evm_increaseTime', [130]);
      await suite.chain.provider.send('evm_mine', []);
      await suite.stack.keepers.watcher.scan();
      await suite.stack.makeMarket();
      const wrap = { outbox: (outbox: Outbox): Outbox => ({ ...outbox, resume: () => Promise.resolve() }) };
      await suite.stack.restartExecutor(wrap);
      await suite.stack.executor.round();
      expect(
        (await suite.stack.keepers.db.knex('swap_outcomes').select('status')).map(({ status }) => status),
      ).to.deep.equal(['expired']);
      const second = await submitWeth(griefer);
      await suite.stack.executor.round();
      expect((await suite.stack.order(second)).attempts, 'the first may still revert').to.deep.equal([]);
      await land();
      await suite.stack.restartExecutor();
      await suite.stack.land();
      expect((await suite.stack.order(second)).reason?.code).to.equal('TOO_MANY_REVERTS');
      expect(await sentSince(start)).to.deep.include({ filled: 0, reverted: 1 });
    });

    it('counts the swaps of one transaction as one, since each further one costs a fraction', async () => {
      const [griefer] = (await createOwners(suite.chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const setCode = (code: string) => suite.chain.provider.send('hardhat_setCode', [griefer.address, code]);
      await suite.allowSwaps(griefer, usdc('3'));
      const together = await new Together__factory(suite.chain.wallet('taker1')).deploy();
      await suite.chain.mine();
      await setCode(await suite.chain.provider.getCode(await together.getAddress()));
      const entrypoint = suite.chain.entrypointAs('taker1');
      const tokens = [suite.stack.token('USDC'), suite.stack.token('WETH')] as const;
      const terms = [usdc('1'), 0n, griefer.address, 2n ** 40n] as const;
      const swap = entrypoint.interface.encodeFunctionData('swap', [...tokens, ...terms]);
      const thrice = <T>(one: T): T[] => Array.from({ length: 3 }, () => one);
      const account = Together__factory.connect(griefer.address, suite.chain.wallet('taker1'));
      const batch = await account.all(thrice(entrypoint.target), thrice(swap), { gasLimit: 2_000_000n });
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      const { gasUsed: spent, logs } = (await batch.wait())!;
      expect(logs.filter(({ address }) => address === entrypoint.target).length).to.equal(3);
      expect(spent < 2n * 96_000n, String(spent)).to.equal(true);

      const start = await suite.chain.provider.getBlockNumber();
      for (let i = 0; i < 3; i++) {
        await setCode(FICKLE);
        await submit(griefer);
        await suite.stack.executor.round();
        await setCode(ENDLESS);
        await suite.chain.mine();
        await suite.stack.keepers.watcher.scan();
      }
      const { reverted, lostGas } = await sentSince(start);
      expect(lostGas < spent + SETUP_GAS, `${lostGas} against ${spent}`).to.equal(true);
      expect(reverted).to.equal(1);
    });

    it('loses less than an account costs by code that appears while its transaction is under way', async () => {
      const [griefer] = (await createOwners(suite.chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const start = await suite.chain.provider.getBlockNumber();
      await submit(griefer);
      await suite.stack.executor.round();
      await suite.chain.provider.send('hardhat_setCode', [griefer.address, ENDLESS]);
      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      const { reverted, lostGas } = await sentSince(start);
      expect(reverted).to.equal(1);
      // The delegation costs 34k to 46k beside.
      expect(lostGas < SETUP_GAS, String(lostGas)).to.equal(true);
      await suite.chain.provider.send('hardhat_setCode', [griefer.address, '0x']);
      let spent = 0n;
      // What was burnt is made up for before anything is sent again, as far as a transaction may burn it.
      while (spent + SETUP_GAS < lostGas + 77_000n) {
        const { orderId } = await submit(griefer, usdc('10'));
        await suite.stack.land();
        const { status, reason } = await suite.stack.order(orderId!);
        expect([status, reason?.code]).to.deep.equal(['pending', 'TOO_MANY_REVERTS']);
        await swapOf(griefer);
        spent += 96_000n;
      }
      await suite.stack.land();
      expect((await sentSince(start)).filled > 0).to.equal(true);
    });

    it('adds up what everything under way for an owner could burn', async () => {
      const credit = 380_000n;
      await beginAgain({ newContractGas: credit });
      const [griefer] = (await createOwners(suite.chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      const weth = suite.chain.tokenAs('WETH', 'taker1');
      await weth.getFunction('transfer').send(griefer.address, parseUnits('1', 18));
      const own = weth.connect(griefer) as Contract;
      await own.getFunction('approve').send(PERMIT2_ADDRESS, parseUnits('1', 18));
      await suite.chain.mine();
      const start = await suite.chain.provider.getBlockNumber();

      await suite.chain.provider.send('hardhat_setCode', [griefer.address, WASTEFUL]);
      const dear = await submit(griefer);
      await suite.stack.executor.round();
      await suite.chain.provider.send('hardhat_setCode', [griefer.address, FICKLE]);
      const quote = await suite.stack.quote(griefer.address, { sellAmountBeforeFee: parseUnits('0.2', 18).toString() });
      const { orderId } = (await suite.stack.submit(quote, griefer)).body;
      await suite.stack.restartExecutor();
      await suite.stack.executor.round();
      const hashOf = async (id: string) =>
        (await suite.stack.order(id)).attempts.find(({ result }) => result === 'sent')?.txHashes[0];
      const first = (await suite.chain.provider.getTransaction((await hashOf(dear.orderId!))!))!;
      expect(await hashOf(orderId), 'while the dear one is under way').to.equal(undefined);

      await suite.chain.mine();
      await suite.stack.keepers.watcher.scan();
      await suite.stack.executor.round();
      const second = (await suite.chain.provider.getTransaction((await hashOf(orderId))!))!;
      // The credit covers the second one twice, but not both.
      expect(2n * second.gasLimit <= credit, String(second.gasLimit)).to.equal(true);
      expect(first.gasLimit + second.gasLimit > credit, String(first.gasLimit)).to.equal(true);
      await suite.stack.land();
      expect((await sentSince(start)).filled).to.equal(2);
    });

    it('sends one transaction for an account whose code answers otherwise to it than to the simulation', async () => {
      await beginAgain({ newContractGas: 250_000n });
      const [griefer] = await createOwners(suite.chain, 'USDC', 1, usdc('1000'));
      await suite.chain.provider.send('hardhat_setCode', [griefer!.address, FICKLE]);
      const flip = (to: bigint) =>
        suite.chain.provider.send('hardhat_setStorageAt', [griefer!.address, '0x0', toBeHex(to, 32)]);
      const start = await suite.chain.provider.getBlockNumber();
      const orders = [await submit(griefer), await submit(griefer)];
      for (let i = 0; i < 3; i++) {
        await suite.stack.executor.round();
        await flip(1n);
        await suite.chain.mine();
        await flip(0n);
        await suite.stack.keepers.watcher.scan();
      }
      expect((await sentSince(start)).reverted).to.equal(1);
      for (const { orderId } of orders) {
        expect((await suite.stack.order(orderId!)).reason?.code).to.equal('TOO_MANY_REVERTS');
      }
    });
  });
});
