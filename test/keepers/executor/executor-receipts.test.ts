/** Transactions of orders whose receipts are not to be had, or that the chain drops: what is held against their owners. */
import { expect } from 'chai';
import { Contract, Transaction, parseUnits, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { MAX_REORG_BLOCKS } from '../../../keepers/watcher/reconcile.js';
import { fromColumn } from '../../../ledger/db/columns.js';
import { readDealings } from '../../../ledger/swaps/swap-wallets.js';
import { deriveGas } from '../../../ledger/transactions/costs.js';
import type { Address, Hex } from '../../../core/types.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachDatabase } from '../../support/db.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type SwapStack } from '../../support/swap-stack.js';

const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
/** How long receipts are waited for, and how often those are asked for again that nobody had. */
const GIVE_UP_MS = 120_000;
const AGAIN_MS = 60_000;
const usdc = (amount: string): bigint => parseUnits(amount, 6);

describe('receipts of orders', function () {
  this.timeout(120_000);

  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let owner: Wallet;
    /** What the executor is told of receipts; the truth by default. */
    let told: (receipt: Record<string, string> | null) => Record<string, string> | null;

    /** The most receipts that were asked for in one go, and whether many are refused. */
    let most = 0;
    let failsBeside = false;

    beforeEach(async () => {
      failsBeside = false;
      ({ chain, stack } = await begin());
      told = (receipt) => receipt;
      [owner] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
      await stack.makeMarket();
      await restart();
    });

    afterEach(() => stack.stop());

    const restart = () =>
      stack.restartExecutor({
        rpc: (rpc: Rpc): Rpc => ({
          ...rpc,
          batch: async (requests) => {
            const asked = requests.filter(({ method }) => method === 'eth_getTransactionReceipt').length;
            most = Math.max(most, asked);
            if (failsBeside && asked >= 50) throw new Error('too many');
            return (await rpc.batch(requests)).map((answer, i) =>
              requests[i]!.method === 'eth_getTransactionReceipt'
                ? told(answer as Record<string, string> | null)
                : answer,
            );
          },
        }),
      });

    async function mineAndScan(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    /** An order that was sent, and its transaction. */
    async function sent(): Promise<{ orderId: string; nonce: bigint; hash: Hex; gasLimit: bigint }> {
      const quote = await stack.quote(owner.address, {
        sellToken: stack.token('USDC'),
        buyToken: stack.token('WETH'),
        sellAmountBeforeFee: usdc('500').toString(),
      });
      const { orderId } = (await stack.submit(quote, owner)).body;
      await stack.executor.round();
      const hash = (await stack.order(orderId)).attempts.find(({ result }) => result === 'sent')!.txHashes[0]!;
      const { gasLimit } = Transaction.from((await chain.provider.getTransaction(hash))!);
      return { orderId, hash, gasLimit, nonce: BigInt(quote.permit2.typedData.message.nonce) };
    }

    /** Has what was sent revert in the next block. */
    async function spoil({ nonce, hash }: { nonce: bigint; hash: Hex }): Promise<bigint> {
      const permit2 = new Contract(PERMIT2_ADDRESS, PERMIT2, owner).getFunction('invalidateUnorderedNonces');
      await permit2.send(nonce >> 8n, 1n << (nonce & 255n), { gasPrice: parseUnits('40', 'gwei'), gasLimit: 100_000n });
      await chain.mine();
      const { status, gasUsed } = (await chain.provider.getTransactionReceipt(hash))!;
      expect(status).to.equal(0);
      return gasUsed;
    }

    async function burnt(): Promise<bigint[]> {
      const dealings = await readDealings(stack.db.knex, owner.address.toLowerCase() as Address);
      return dealings.map((one) => {
        if (one.kind !== 'revert') throw new Error(one.kind);
        return one.gasUsed;
      });
    }

    const costs = async (): Promise<{ hash: string; gas: number }[]> =>
      (await stack.db.knex('order_costs').orderBy('nonce')).map(({ hash, gas_used: gas }) => ({ hash, gas }));

    /** What the sums by day say is what the rows do. */
    async function expectSums(): Promise<void> {
      const derived = await deriveGas(stack.db.knex, 'executor');
      const rows = await stack.db.knex('gas_days').where({ role: 'executor' });
      const summed = rows.map(({ gas }) => fromColumn(gas)).reduce((a, b) => a + b, 0n);
      expect(summed).to.equal([...derived.rows.values()].reduce((sum, { sums }) => sum + sums[0]!, 0n));
    }

    it('that nobody has cost the owner the limit of the transaction, until one is found', async () => {
      const one = await sent();
      const gasUsed = await spoil(one);
      await stack.keepers.watcher.scan();
      told = () => null;
      await stack.executor.round();
      expect(await burnt(), 'it is waited for').to.deep.equal([]);
      stack.advance(GIVE_UP_MS);
      await stack.executor.round();
      expect(await burnt()).to.deep.equal([one.gasLimit]);
      expect(await costs()).to.deep.equal([{ hash: '0x', gas: 0 }]);
      stack.advance(AGAIN_MS);
      await stack.executor.round();
      expect(await burnt(), 'still nobody has it').to.deep.equal([one.gasLimit]);
      told = (receipt) => receipt;
      stack.advance(AGAIN_MS);
      await stack.executor.round();
      expect(await burnt()).to.deep.equal([gasUsed]);
      expect(await costs()).to.deep.equal([{ hash: one.hash, gas: Number(gasUsed) }]);
      await expectSums();
    });

    it('that nobody has cost nothing where the ledger knows the fill, whenever it does', async () => {
      await sent();
      await chain.mine();
      told = () => null;
      await stack.executor.round();
      stack.advance(GIVE_UP_MS);
      await stack.executor.round();
      expect(await burnt(), 'the ledger has not come to it').to.have.length(1);
      await stack.keepers.watcher.scan();
      stack.advance(AGAIN_MS);
      await stack.executor.round();
      const kinds = (await readDealings(stack.db.knex, owner.address.toLowerCase() as Address)).map(({ kind }) => kind);
      expect(kinds).to.deep.equal(['fill']);
    });

    it('are noted while what was noted before can not be looked at again, and asked for as many at a time as endpoints take', async () => {
      await sent();
      await mineAndScan();
      await stack.executor.round();
      const [first] = await stack.db.knex('order_costs');
      const [row] = await stack.db.knex('outbox').where({ hash: first!.hash });
      // Replacements of it, more than one request may hold.
      const hashOf = (i: number): Hex => `0x${i.toString(16).padStart(64, '0')}`;
      const replacement = (i: number) => ({ ...row!, hash: hashOf(i) });
      await stack.db.knex('outbox').insert(Array.from({ length: 60 }, (_, i) => replacement(i + 1)));
      most = 0;
      failsBeside = true;
      for (let i = 0; i <= MAX_REORG_BLOCKS; i++) await chain.mine();
      await stack.keepers.watcher.scan();
      await restart();
      await sent();
      await mineAndScan();
      await stack.executor.round();
      expect(await costs()).to.have.length(2);
      expect(most, 'it was looked at').to.be.within(1, 50);
    });

    it('cost nothing any more once the chain has dropped their transactions', async () => {
      const before = (await chain.provider.send('evm_snapshot', [])) as string;
      const one = await sent();
      await spoil(one);
      await stack.executor.round();
      expect([(await burnt()).length, (await costs()).length]).to.deep.equal([1, 1]);
      await chain.provider.send('evm_revert', [before]);
      await chain.provider.send('evm_increaseTime', [1]);
      await mineAndScan();
      await stack.executor.round();
      expect([await burnt(), await costs()]).to.deep.equal([[], []]);
      await expectSums();
      // On this branch it fills.
      await mineAndScan();
      await stack.executor.round();
      expect((await stack.order(one.orderId)).status).to.equal('filled');
      expect((await costs()).map(({ hash }) => hash)).to.deep.equal([one.hash]);
      await expectSums();
    });

    it('are read again once they are final, since another branch may have another end of the same transaction', async () => {
      const one = await sent();
      await mineAndScan();
      expect((await stack.order(one.orderId)).status).to.equal('filled');
      told = (receipt) => receipt && { ...receipt, status: '0x0', gasUsed: toQuantity(77_777n) };
      await stack.executor.round();
      expect((await costs()).map(({ gas }) => gas)).to.deep.equal([77_777]);
      told = (receipt) => receipt;
      await stack.executor.round();
      expect(
        (await costs()).map(({ gas }) => gas),
        'not final yet',
      ).to.deep.equal([77_777]);
      for (let i = 0; i <= MAX_REORG_BLOCKS; i++) await chain.mine();
      await stack.keepers.watcher.scan();
      await stack.executor.round();
      const { gasUsed } = (await chain.provider.getTransactionReceipt(one.hash))!;
      expect(await costs()).to.deep.equal([{ hash: one.hash, gas: Number(gasUsed) }]);
      expect(await stack.db.knex('swap_reverts').select('tx_hash')).to.deep.equal([]);
      await expectSums();
    });
  }, forEachDatabase);
});
