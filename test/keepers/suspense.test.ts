/** What the chain did and nothing stored explains: it is conserved, nobody's, and kept out of settlements until somebody decided. */
import { expect } from 'chai';
import type { Address } from '../../core/types.js';
import { checkUncovered } from '../../keepers/verify/suspense.js';
import { VerifyError } from '../../keepers/verify/verification.js';
import type { RpcPool } from '../../keepers/chain/pool.js';
import { planReconcile } from '../../keepers/watcher/reconcile.js';
import { accountKey } from '../../ledger/chain/invariants.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { rereadFrom } from '../../ledger/chain/reversals.js';
import { readSuspense, readSuspenseFacts, type SuspenseRow } from '../../ledger/chain/suspense.js';
import { SUSPENSE } from '../../ledger/types.js';
import { ICurveBook__factory } from '../../typechain-types/index.js';
import { forEachDatabase } from '../support/db.js';
import type { Intercept, KeeperOptions } from '../support/keeper-stack.js';
import { startDouble, type DoubleKeepers } from '../support/nodes/double-keepers.js';

const ETHER = 10n ** 18n;
const LOTS = 10_000n;
const BOOK = ICurveBook__factory.createInterface();
const CURVE_WORDS = BOOK.getFunction('curveWords').selector;

describe('suspense', function () {
  this.timeout(60_000);

  it("verify finds a maker's side of a fill in suspense that its row could bear", () => {
    const [seller, weth, usdc] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`, `0x${'c'.repeat(40)}`] as const;
    const side: SuspenseRow = {
      ...{ item: '00', kind: 'fill', code: 'uncovered_fill', message: '', ref: 'fill:0:1', market: 0, seq: 1 },
      ...{ maker: seller, token: weth, units: -80n, otherToken: usdc, otherUnits: 160n, blockNumber: 1, txHash: '0x' },
      ...{ generation: 1, assignment: null },
    };
    const paid: SuspenseRow = { ...side, kind: 'execution', units: -30n, otherToken: null, otherUnits: 0n };
    const credit: SuspenseRow = {
      ...side,
      ...{ kind: 'fill', maker: null, units: 30n, otherToken: null, otherUnits: 0n },
      assignment: { account: seller, operatorSeq: 1, generation: 1 },
    };
    const check = (wethUnits: bigint, items = [side], assigned: SuspenseRow[] = []) =>
      checkUncovered({ items, assigned }, new Map([[accountKey({ account: seller, token: weth }), wethUnits]]));
    check(79n);
    expect(() => check(80n)).to.throw(VerifyError, 'could bear');
    check(109n, [side, paid]);
    expect(() => check(110n, [side, paid])).to.throw(VerifyError, 'could bear');
    check(109n, [side], [credit]);
    expect(() => check(110n, [side], [credit])).to.throw(VerifyError, 'could bear');
  });

  forEachDatabase((_name, open) => {
    let one: DoubleKeepers;
    let maker: Address;

    afterEach(() => one.stack.stop());

    /** A maker with 10 WETH that sells them, and takers that bought 2 of them on two curves, in the chain's history. */
    async function traded(): Promise<void> {
      one = await startDouble(await open());
      maker = one.chain.address('maker1');
      await one.send('maker1', 'deposit', [one.token('WETH'), 10n * ETHER]);
      await one.send('maker2', 'deposit', [one.token('DAI'), 10n * ETHER]);
      await one.land();
      await one.stack.order(maker, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 5n * LOTS }]);
      for (let round = 0; round < 2; round++) {
        await one.stack.poster.round();
        await one.land();
        await one.buy('taker2', ETHER);
        await one.land();
      }
      expect(await one.balance(maker, 'WETH')).to.equal(8n * ETHER);
    }

    const openItems = () => readSuspense(one.db.knex, { open: true });
    const operator = (): Address => one.chain.address('owner');

    async function assign(item: string, account: Address): Promise<void> {
      await appendOperatorRow(one.db, { timeMs: 1, kind: 'assign', maker: account, note: 'seen in its log', item });
      await one.land();
    }

    it('a new database on a live chain books nothing to anybody that it can not explain', async () => {
      await traded();
      const usdc = await one.balance(maker, 'USDC');
      one = await one.restart(await open());
      await one.catchUp();
      expect(one.stack.watcher.status().nextBlock, 'the chain is followed').to.equal(
        Number(await one.chain.rpc.call('eth_blockNumber')) + 1,
      );
      expect((await readHalt(one.db.knex))?.code).to.equal('unexplained_curve');
      expect(await one.balance(operator(), 'USDC')).to.equal(0n);
      expect(await one.balance(operator(), 'WETH')).to.equal(0n);
      expect([await one.balance(SUSPENSE, 'WETH'), await one.balance(SUSPENSE, 'USDC')]).to.deep.equal([
        -2n * ETHER,
        usdc,
      ]);
      expect((await openItems()).map(({ kind, seq }) => [kind, seq])).to.deep.equal([
        ['fill', 1],
        ['fill', 2],
      ]);
      expect((await readSuspenseFacts(one.db.knex)).curves).to.equal(2);
      await one.expectConserved();
      expect(await one.verify()).to.include({ suspense: 4, openSuspense: 2, fills: 2 });
    });

    it('no number of resumes books anything to the operator, or raises a claim', async () => {
      await traded();
      const usdc = await one.balance(maker, 'USDC');
      await one.send('maker1', 'requestWithdraw', [one.token('WETH'), 9n * ETHER]);
      await one.send('maker1', 'requestWithdraw', [one.token('USDC'), usdc]);
      await one.mine();
      one = await one.restart(await open());
      await one.catchUp();
      for (let resumed = 0; resumed < 8; resumed++) {
        await appendOperatorRow(one.db, { timeMs: 1, kind: 'resume', maker: null, note: '' });
        await one.land();
        expect((await one.stack.settler.round()).settlements).to.deep.equal([]);
        expect([await one.balance(operator(), 'USDC'), await one.balance(operator(), 'WETH')]).to.deep.equal([0n, 0n]);
      }
      expect(await one.db.knex('settlements').select()).to.deep.equal([]);
      expect(await one.db.knex('custody_events').where({ kind: 'settled' }).select()).to.deep.equal([]);
      expect(await openItems()).to.have.length(2);
      await one.expectConserved();
      await one.verify();
    });

    /** Endpoints that say of a market's curve that it has other words. */
    const sayingOtherWords = (pool: RpcPool): RpcPool => ({
      ...pool,
      async batch(calls) {
        const answers = await pool.batch(calls);
        return answers.map((answer, i) => {
          const { data = '' } = (calls[i]!.params as [{ data?: string }])[0];
          if (!data.startsWith(CURVE_WORDS)) return answer;
          const [asks, bids] = BOOK.decodeFunctionResult('curveWords', answer as string) as unknown as bigint[][];
          return BOOK.encodeFunctionResult('curveWords', [asks!.map((word) => word + 1n), [...bids!]]);
        });
      },
    });

    it('an item goes where the operator says, with the reason in the log, also after blocks were taken back', async () => {
      await traded();
      const usdc = await one.balance(maker, 'USDC');
      one = await one.restart(await open());
      await one.catchUp();
      const [first, second] = await openItems();
      const before = await one.snapshot();
      await assign(first!.item, maker);
      expect(await one.balance(maker, 'WETH')).to.equal(9n * ETHER);
      await one.expectConserved();
      await one.verify();
      await assign(second!.item, operator());
      // Before anything is posted, as the runbook says: the newest curve on-chain is still the foreign one.
      expect(await one.verify(one.pool)).to.include({ suspense: 4, openSuspense: 0 });
      const differing = await one.verify(sayingOtherWords(one.pool)).catch((error: Error) => error);
      expect((differing as Error).message).to.match(/^curve 2 of WETH-USDC: words: recorded 0x/);
      expect(await one.balance(operator(), 'WETH')).to.equal(-ETHER);
      expect(await one.balance(operator(), 'USDC')).to.equal(usdc / 2n);
      expect(await openItems()).to.deep.equal([]);
      expect((await readSuspenseFacts(one.db.knex)).units).to.deep.equal([]);
      expect(await one.verify()).to.include({ suspense: 4, openSuspense: 0 });
      await one.fork(before, 5);
      await one.stack.watcher.scan();
      expect((await readHalt(one.db.knex))?.code).to.equal('canonical_mismatch');
      const { deploymentBlock } = one.chain.manifest;
      await one.reconcile((await planReconcile(one.db, one.pool, { deploymentBlock }))!.reversal);
      expect(await openItems()).to.deep.equal([]);
      expect([await one.balance(maker, 'WETH'), await one.balance(operator(), 'WETH')]).to.deep.equal([
        9n * ETHER,
        -ETHER,
      ]);
      await one.expectConserved();
      expect(await one.verify()).to.include({ suspense: 4, openSuspense: 0 });
    });

    it('an item is not put on a row that lacks the tokens', async () => {
      await traded();
      one = await one.restart(await open());
      await one.catchUp();
      const [first] = await openItems();
      await assign(first!.item, one.chain.address('maker2'));
      expect((await openItems())[0]).to.deep.equal(first);
      expect(await one.balance(one.chain.address('maker2'), 'WETH')).to.equal(0n);
      await one.verify();
    });

    it('an item is not put on a row that may be withdrawn, until its claim leaves room', async () => {
      await traded();
      await one.send('maker2', 'deposit', [one.token('WETH'), 5n * ETHER]);
      await one.settleAs(9n * ETHER + 1n, 'maker1', 'WETH');
      await one.mine();
      one = await one.restart(await open());
      await one.catchUp();
      const [first, second] = await openItems();
      // Decided without the command, which refuses it.
      await assign(first!.item, maker);
      expect((await openItems()).map(({ item }) => item)).to.include(first!.item);
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER);
      await one.settleAs(9n * ETHER, 'maker1', 'WETH');
      await one.land();
      await one.land();
      expect(await one.balance(maker, 'WETH'), 'decided, and booked once it fits').to.equal(9n * ETHER);
      await assign(second!.item, maker);
      expect(await one.balance(maker, 'WETH'), 'the other one does not fit beside it').to.equal(9n * ETHER);
      await assign(second!.item, operator());
      expect((await openItems()).map(({ kind }) => kind)).to.deep.equal(['settlement', 'settlement']);
      await one.expectConserved();
      await one.verify();
    });

    it('what was assigned and spent is booked again when its blocks are read again', async () => {
      await traded();
      const usdc = await one.balance(maker, 'USDC');
      one = await one.restart(await open(), { watcher: { haltOnSuspense: false } });
      await one.catchUp();
      const [first, second] = await openItems();
      await assign(first!.item, maker);
      expect(await one.balance(maker, 'USDC')).to.equal(usdc / 2n);
      // All of the USDC that the assignment brought.
      await one.stack.order(maker, [{ side: 'bid', priceTicks: 300_000n, sizeLots: LOTS }]);
      await one.stack.poster.round();
      await one.land();
      await one.sell('taker2', ETHER);
      await one.land();
      const rows = async () => ({
        maker: [await one.balance(maker, 'WETH'), await one.balance(maker, 'USDC')],
        suspense: [await one.balance(SUSPENSE, 'WETH'), await one.balance(SUSPENSE, 'USDC')],
      });
      const before = await rows();
      expect(before.maker).to.deep.equal([10n * ETHER, 0n]);
      await one.reconcile((await rereadFrom(one.db.knex, first!.blockNumber))!);
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await rows()).to.deep.equal(before);
      expect((await openItems()).map(({ item }) => item)).to.deep.equal([second!.item]);
      await one.expectConserved();
      expect(await one.verify(one.pool)).to.include({ suspense: 4, openSuspense: 1, fills: 3 });
    });

    /** A maker with 10 WETH on a new database, which sells all of them, and two items of 1 WETH each that are its own; posting goes on. */
    async function sellsAll(options: KeeperOptions = {}): Promise<string[]> {
      await traded();
      // What the foreign curves sold has left the vault.
      await one.send('maker2', 'deposit', [one.token('WETH'), 50n * ETHER]);
      await one.mine();
      one = await one.restart(await open(), { ...options, watcher: { haltOnSuspense: false } });
      await one.catchUp();
      await one.stack.order(maker, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 10n * LOTS }]);
      return (await openItems()).map(({ item }) => item);
    }

    const decide = (item: string) =>
      appendOperatorRow(one.db, { timeMs: 1, kind: 'assign', maker, note: 'its order', item });

    /** Buys what is left when both items are booked, and not what was there before. */
    async function expectSellsEight(): Promise<void> {
      await one.buy('taker2', 9n * ETHER);
      await one.land();
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await one.balance(maker, 'WETH'), 'there is less').to.equal(8n * ETHER);
      await one.buy('taker2', 7n * ETHER);
      await one.land();
      expect(await one.balance(maker, 'WETH')).to.equal(ETHER);
      expect(await openItems()).to.deep.equal([]);
      await one.expectConserved();
      await one.verify();
    }

    it('no curve offers what an assignment that is not booked yet will take', async () => {
      for (const item of await sellsAll()) await decide(item);
      expect(await one.stack.poster.round()).to.not.equal(null);
      await one.land();
      await expectSellsEight();
    });

    it('no curve is prepared from a cut before an assignment to one of its makers', async () => {
      let beforeWrite = async (): Promise<void> => undefined;
      const intercept: Intercept = {
        look: () => undefined,
        write: (role) => (role === 'poster' ? beforeWrite() : Promise.resolve()),
        broadcast: async (_role, raw) => void (await one.chain.rpc.call('eth_sendRawTransaction', [raw])),
      };
      const items = await sellsAll({ intercept });
      beforeWrite = async () => {
        while (items.length > 0) await decide(items.pop()!);
      };
      expect(await one.stack.poster.round()).to.equal(null);
      await one.land();
      expect(await openItems(), 'booked').to.deep.equal([]);
      await one.stack.poster.round();
      await one.land();
      await expectSellsEight();
    });

    it('no claim that it may concern is settled, where posting goes on, and every other one is', async () => {
      await traded();
      await one.send('maker1', 'requestWithdraw', [one.token('WETH'), 9n * ETHER]);
      await one.send('maker2', 'requestWithdraw', [one.token('DAI'), ETHER]);
      await one.mine();
      one = await one.restart(await open(), { watcher: { haltOnSuspense: false } });
      await one.catchUp();
      expect(await readHalt(one.db.knex)).to.equal(null);
      const { settlements } = await one.stack.settler.round();
      expect(settlements.map(({ token, amountUnits }) => [token, amountUnits])).to.deep.equal([
        [one.token('DAI'), ETHER],
      ]);
      await one.land();
      await one.stack.settler.round();
      for (const { item } of await openItems()) await assign(item, maker);
      expect((await one.stack.settler.round()).settlements, 'the last curve is live').to.deep.equal([]);
      await one.chain.rpc.call('evm_increaseTime', [3_600]);
      await one.land();
      const later = await one.stack.settler.round();
      expect(later.settlements.map(({ amountUnits }) => amountUnits)).to.deep.equal([8n * ETHER]);
      await one.land();
      expect(await readHalt(one.db.knex)).to.equal(null);
      await one.expectConserved();
      await one.verify();
    });

    it('no claim of an account is settled while something that is assigned to it waits to be booked', async () => {
      await traded();
      const usdc = await one.balance(maker, 'USDC');
      await one.send('maker2', 'deposit', [one.token('USDC'), usdc]);
      await one.settleAs(usdc, 'maker1', 'USDC');
      await one.mine(5);
      await one.send('maker1', 'executeWithdraw', [one.token('USDC')]);
      await one.send('maker2', 'requestWithdraw', [one.token('USDC'), usdc]);
      await one.mine();
      one = await one.restart(await open(), { watcher: { haltOnSuspense: false } });
      await one.catchUp();
      const items = await openItems();
      const paid = items.find(({ kind }) => kind === 'execution')!;
      for (const { item } of items) if (item !== paid.item) await assign(item, maker);
      await one.chain.rpc.call('evm_increaseTime', [3_600]);
      await one.land();
      expect((await openItems()).map(({ item }) => item)).to.deep.equal([paid.item]);
      const other = one.chain.address('maker2');
      const act = { timeMs: 1, kind: 'assign' as const, maker: other, note: 'its payout', item: paid.item };
      await appendOperatorRow(one.db, act);
      expect((await one.stack.settler.round()).settlements).to.deep.equal([]);
      await one.land();
      expect(await openItems()).to.deep.equal([]);
      expect([await one.balance(other, 'USDC'), await one.balance(maker, 'USDC')]).to.deep.equal([0n, usdc]);
      await one.expectConserved();
      await one.verify();
    });

    it('nothing in the tokens of a curve that nobody here prepared is settled as long as takers can execute it', async () => {
      one = await startDouble(await open());
      await one.send('maker1', 'deposit', [one.token('WETH'), 10n * ETHER]);
      await one.land();
      await one.stack.order(one.chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: 5n * LOTS }]);
      await one.stack.poster.round();
      await one.land();
      await one.send('maker1', 'requestWithdraw', [one.token('WETH'), 9n * ETHER]);
      await one.mine();
      one = await one.restart(await open(), { watcher: { haltOnSuspense: false } });
      await one.catchUp();
      expect(await openItems(), 'no fill yet').to.deep.equal([]);
      expect((await readSuspenseFacts(one.db.knex)).curves).to.equal(1);
      expect((await one.stack.settler.round()).settlements).to.deep.equal([]);
      await one.chain.rpc.call('evm_increaseTime', [3_600]);
      await one.land();
      expect((await one.stack.settler.round()).settlements).to.have.length(1);
    });

    it('a settlement that nobody here prepared, and a payout beyond what its maker had', async () => {
      await traded();
      const usdc = await one.balance(maker, 'USDC');
      await one.settleAs(usdc, 'maker1', 'USDC');
      await one.mine(5);
      await one.send('maker1', 'executeWithdraw', [one.token('USDC')]);
      await one.mine();
      one = await one.restart(await open());
      await one.catchUp();
      expect(one.stack.watcher.status().nextBlock).to.equal(Number(await one.chain.rpc.call('eth_blockNumber')) + 1);
      const items = await openItems();
      expect(items.map(({ kind }) => kind)).to.deep.equal(['fill', 'fill', 'settlement', 'execution']);
      expect(items[3]!.units).to.equal(-usdc);
      expect(await one.balance(maker, 'USDC')).to.equal(0n);
      expect(await one.balance(SUSPENSE, 'USDC')).to.equal(0n);
      await one.expectConserved();
      await one.verify();
      for (const { item } of items.slice(0, 3)) await assign(item, maker);
      await assign(items[3]!.item, maker);
      expect([await one.balance(maker, 'USDC'), await one.balance(maker, 'WETH')]).to.deep.equal([0n, 8n * ETHER]);
      expect(await openItems()).to.deep.equal([]);
      await one.expectConserved();
      await one.verify();
    });
  });
});
