import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import { pino } from 'pino';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { createCompactor, LEAST_AGE_MS } from '../../keepers/compactor.js';
import { verifyLedger, type VerifyReport } from '../../keepers/verify/verify.js';
import { VerifyError } from '../../keepers/verify/verification.js';
import { MAX_REORG_BLOCKS, planReconcile } from '../../keepers/watcher/reconcile.js';
import { readCompactionPosition } from '../../ledger/orders/compacted-book.js';
import type { CompactionStep } from '../../ledger/orders/compaction.js';
import { readHalt } from '../../ledger/chain/ledger-log.js';
import { packBook, unpackBook } from '../../ledger/chain/packed-book.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../ledger/orders/order-log.js';
import { fillSeqs, fillWithLegs, userOrderFills } from '../../ledger/views/reads.js';
import { rereadFrom } from '../../ledger/chain/reversals.js';
import { requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import type { Db, Writer } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { loadState } from '../../server/orders/state.js';
import { LedgerReversedError } from '../../ledger/errors.js';
import { forEachDatabase } from '../support/db.js';
import { startGateway } from '../support/gateway.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { verifyDeps, verifyRpc } from '../support/verify.js';

const DAY_MS = 86_400_000;
const ETHER = 10n ** 18n;
const CLOID = `0x${'c10'.repeat(10)}ff`;

describe('retention of the order log', () => {
  let chain: ManualChain;

  before(async function () {
    this.timeout(120_000);
    chain = await startManualChain();
  });

  after(() => chain.close());

  forEachDatabase((_name, open) => {
    let db: Db;
    let stack: KeeperStack;

    beforeEach(async function () {
      this.timeout(60_000);
      await chain.reset();
      db = await open();
      stack = await startKeepers(db, chain);
      await land();
    });

    afterEach(() => stack.stop());

    async function land(blocks = 1): Promise<void> {
      for (let block = 0; block < blocks; block += 1) await chain.mine();
      do await stack.watcher.scan();
      while (stack.watcher.status().catchingUp && stack.watcher.status().halt === null);
    }

    async function buy(units: bigint): Promise<void> {
      const [sell, wanted] = ['USDC', 'WETH'].map((symbol) =>
        chain.manifest.tokens.find((one) => one.symbol === symbol)!,
      );
      const taker = chain.address('taker1');
      await chain
        .entrypointAs('taker1')
        .swapExactOutput(sell!.address, wanted!.address, units, MaxUint256, taker, MaxUint256, {
          gasLimit: 1_000_000n,
        });
    }

    /** A curve with two makers, hit once; then an order is replaced, so that rows lie behind the next curve. */
    async function trade(priceTicks: bigint): Promise<void> {
      const [first] = await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks, sizeLots: 10_000n }]);
      await stack.order(chain.address('maker2'), [{ side: 'ask', priceTicks, sizeLots: 20_000n, cloid: CLOID }]);
      await publish();
      await buy(ETHER / 3n);
      await land();
      await stack.order(chain.address('maker1'), [], [first!]);
    }

    async function publish(): Promise<void> {
      expect(await stack.poster.round()).not.to.equal(null);
      await land();
    }

    /** Until the curves so far are dead at each block that a reorganisation may take back. */
    async function pass(): Promise<void> {
      await chain.provider.send('evm_increaseTime', [120]);
      await land(MAX_REORG_BLOCKS + 6);
    }

    const verify = (): Promise<VerifyReport> => verifyLedger({ ...verifyDeps(db, chain), rpc: verifyRpc(chain) });

    /** As the gateway's process does it, by default a day later. Takes the order log over and gives it back. */
    async function compact({ maxRows = 0, laterMs = DAY_MS, told = [] as unknown[] } = {}): Promise<CompactionStep> {
      await stack.stop();
      const writer = await acquireWriter(db, 'order');
      const compactor = createCompactor({
        writer,
        retentionMs: 3_600_000,
        maxRows,
        closedOrders: 0,
        nowMs: () => Date.now() + laterMs,
        logger: pino({ base: null, timestamp: false }, { write: (line) => void told.push(JSON.parse(line)) }),
      });
      const compacted = await compactor.compact(new AbortController().signal);
      expect(await compactor.compact(new AbortController().signal), 'a second time').to.deep.equal({
        orderRows: 0,
        surplusRows: 0,
        generations: 0,
      });
      await writer.release();
      stack = await startKeepers(db, chain);
      await land();
      return compacted;
    }

    it('compacts what no curve needs, and everything goes on as it was', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      expect((await compact()).orderRows, 'within reach of a reorganisation').to.equal(0);
      await pass();
      const before = await verify();
      expect(before).to.include({ curves: 1, foldedCurves: 0, fills: 1, foldedOrders: 0 });
      const compacted = await compact();
      expect(compacted.orderRows).to.be.greaterThan(0);
      expect(await verify()).to.include({ curves: 1, foldedCurves: 1, fills: 1, foldedOrders: 2 });

      // The book still knows what remains of maker2's order; the newest curve's own rows are gone, and it is dead.
      await publish();
      await buy(ETHER / 5n);
      await land();
      const parts = await fillWithLegs(db.knex, 0, 2);
      expect(parts?.orderFills.map(({ maker }) => maker)).to.deep.equal([chain.address('maker2')]);
      expect(parts?.decomposition.missingBaseUnits).to.equal(0n);
      expect(await readHalt(db.knex)).to.equal(null);
      expect(await verify()).to.include({ curves: 2, foldedCurves: 1, fills: 2 });
    });

    it('compacts young rows once they are too many, and tells when that is not possible', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      // Else the machine decides whether the clock of the chain's blocks is ahead of that of the rows, which go with the fills before them.
      const head = (await chain.provider.getBlock('latest'))!;
      await db.knex('order_log').update({ time_ms: head.timestamp * 1_000 });
      const held = {
        level: 40,
        msg: 'more order rows stay than are wanted: they are too young, or a curve needs them',
      };
      const told: { msg: string }[] = [];
      await compact({ maxRows: 1, laterMs: 2 * LEAST_AGE_MS, told });
      expect(
        told.filter(({ msg }) => msg === held.msg),
        'a live curve, told once',
      ).to.deep.equal([{ ...held, heldRows: 2, maxRows: 1 }]);
      await pass();
      told.length = 0;
      expect(await compact({ maxRows: 1, laterMs: 0, told })).to.include({ orderRows: 0 });
      expect(told, 'too young').to.deep.equal([{ ...held, heldRows: 2, maxRows: 1 }]);
      told.length = 0;
      expect(await compact({ maxRows: 3, laterMs: 2 * LEAST_AGE_MS }), 'not too many').to.include({ orderRows: 0 });
      const compacted = await compact({ maxRows: 1, laterMs: 2 * LEAST_AGE_MS, told });
      expect(compacted).to.include({ orderRows: 2, surplusRows: 2 });
      expect(told).to.deep.equal([{ level: 30, ...compacted, msg: 'compacted the order log' }]);
      expect(await verify()).to.include({ curves: 1, foldedCurves: 1, fills: 1, foldedOrders: 2 });
      await publish();
      await buy(ETHER / 5n);
      await land();
      const parts = await fillWithLegs(db.knex, 0, 2);
      expect(parts?.orderFills.map(({ maker }) => maker)).to.deep.equal([chain.address('maker2')]);
      expect(await readHalt(db.knex)).to.equal(null);
      expect(await verify()).to.include({ curves: 2, foldedCurves: 1, fills: 2 });
    });

    it('ends a round however fast rows come meanwhile', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      await pass();
      const maker = chain.address('maker1');
      const tx: Writer['tx'] = async (run) => {
        const result = await writer.tx(run);
        await writer.tx(async (next) => {
          const orderSeq = (await lastOrderSeq(next)) + 1;
          const row = { orderSeq, timeMs: Date.now(), maker, signer: null, nonce: null, kind: 'x', effects: [] };
          await appendOrderRows(next, [row]);
        });
        return result;
      };
      await stack.stop();
      const writer = await acquireWriter(db, 'order');
      const compactor = createCompactor({
        writer: { ...writer, tx },
        retentionMs: 3_600_000,
        maxRows: 1,
        closedOrders: 0,
        nowMs: () => Date.now() + 2 * LEAST_AGE_MS,
        logger: pino({ level: 'silent' }),
      });
      const { orderRows } = await compactor.compact(AbortSignal.timeout(20_000));
      expect(orderRows).to.be.within(2, 4);
      await writer.release();
      stack = await startKeepers(db, chain);
    });

    it('leaves fills the client order ids of their orders, after a restart in the middle of a curve, too', async function () {
      this.timeout(120_000);
      const cloids = async (): Promise<(string | null)[]> =>
        (await userOrderFills(db.knex, chain.address('maker2'))).map(({ cloid }) => cloid);
      await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: 10_000n }]);
      await stack.order(chain.address('maker2'), [
        { side: 'ask', priceTicks: 300_000n, sizeLots: 20_000n, cloid: CLOID },
      ]);
      await publish();
      await buy(ETHER / 3n);
      await land();
      await stack.stop();
      stack = await startKeepers(db, chain);
      await buy(ETHER / 5n);
      await land();
      expect(await cloids()).to.deep.equal([CLOID, CLOID]);
      await pass();
      expect((await compact()).orderRows).to.be.greaterThan(0);
      expect(await cloids()).to.deep.equal([CLOID, CLOID]);
      expect((await userOrderFills(db.knex, chain.address('maker1'))).map(({ cloid }) => cloid)).to.deep.equal([
        null,
        null,
      ]);
      expect(await verify()).to.include({ fills: 2 });
    });

    it('leaves whatever a reorganisation may bring back, so that reconciling works as ever', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      await pass();
      const common = (await chain.provider.send('evm_snapshot', [])) as string;
      await publish();
      await buy(ETHER / 7n);
      await land(10);
      expect((await fillSeqs(db.knex)).get(0)).to.equal(2);
      expect((await compact()).orderRows).to.be.greaterThan(0);
      await chain.provider.send('evm_revert', [common]);
      await chain.provider.send('evm_increaseTime', [1]);
      for (let block = 0; block < 14; block += 1) await chain.mine();
      await stack.watcher.scan();
      const rpc = createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger: pino({ level: 'silent' }) });
      const plan = await planReconcile(db, rpc, { deploymentBlock: chain.manifest.deploymentBlock });
      await requestReconcile(db, { reversal: plan!.reversal, capitalOrigin: false }, 1);
      do await stack.watcher.scan();
      while (stack.watcher.status().catchingUp);
      expect(await readHalt(db.knex)).to.equal(null);
      expect((await fillSeqs(db.knex)).get(0)).to.equal(1);
      await stack.stop();
      stack = await startKeepers(db, chain);
      await land();
      await publish();
      await buy(ETHER / 9n);
      await land();
      expect(await verify()).to.include({ fills: 2, reversals: 1 });
    });

    /** Has the chain read again from a block on, scans to the head, and starts the keepers anew, as the process does after a reversal. */
    async function readAgain(block: number): Promise<void> {
      const reversal = await rereadFrom(db.knex, block);
      expect(reversal!.keptGeneration).to.be.lessThan((await readCompactionPosition(db.knex)).generation);
      await requestReconcile(db, { reversal, capitalOrigin: false }, 1);
      await stack.watcher.scan();
      await stack.stop();
      stack = await startKeepers(db, chain);
      await land();
    }

    const blockOf = async (fillSeq: number): Promise<number> =>
      (await db.knex('fills').where({ market: 0, fill_seq: fillSeq }).first<{ block_number: number }>()).block_number;

    /** Open orders as the gateway has them: lots of their sizes, and units that were filled. */
    async function openOrders(role: string): Promise<[oid: number, sizeLots: bigint, filledUnits: bigint][]> {
      const { book } = (await loadState(db)).committed();
      return [...book.openOrders(chain.address(role))].map((one) => [one.oid, one.sizeLots, one.filledUnits]);
    }

    it('gives fills back to orders when their blocks are read again, however long ago they were compacted', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      const block = await blockOf(1);
      await pass();
      await compact();
      const [open, folded] = [await openOrders('maker2'), await db.knex('folded_orders').orderBy('oid').select()];
      expect(open).to.have.length(1);
      const at = await readCompactionPosition(db.knex);
      await readAgain(block);
      expect(await readCompactionPosition(db.knex)).to.include({ orderSeq: at.orderSeq, cutGeneration: at.generation });
      expect(await openOrders('maker2')).to.deep.equal(open);
      expect(await verify()).to.include({ curves: 1, foldedCurves: 1, fills: 1, foldedOrders: 2, reversals: 1 });
      // The poster goes on from there, and so does compaction once they are old again.
      await publish();
      await buy(ETHER / 5n);
      await land();
      expect(await verify()).to.include({ curves: 2, foldedCurves: 1, fills: 2 });
      expect(await readHalt(db.knex)).to.equal(null);
      await pass();
      await compact();
      expect((await readCompactionPosition(db.knex)).generation).to.be.greaterThan(at.generation);
      expect((await db.knex('folded_orders').orderBy('oid').select())[0]).to.deep.equal(folded[0]);
      expect(await verify()).to.include({ fills: 2, foldedOrders: 2 });
    });

    it('goes on where an earlier version left the compacted book beyond a reversal, and tells until then why nothing is posted', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      const block = await blockOf(1);
      await pass();
      await compact();
      const [open, { generation }] = [await openOrders('maker2'), await readCompactionPosition(db.knex)];
      const folded = await db.knex('folded_orders').select();
      await readAgain(block);
      await db.knex('fold_position').update({ generation });
      for (const row of folded) await db.knex('folded_orders').where({ oid: row.oid }).update(row);
      await stack.stop();
      stack = await startKeepers(db, chain);
      await land();
      const failure = async (work: Promise<unknown>): Promise<unknown> => work.catch((reason: unknown) => reason);
      expect(await failure(stack.poster.round())).to.be.instanceOf(LedgerReversedError);
      expect(stack.poster.status().blockedBy).to.equal('book_unreadable');
      expect(await failure(loadState(db))).to.be.instanceOf(LedgerReversedError);
      await stack.stop();
      await (await startGateway(db)).stop();
      stack = await startKeepers(db, chain);
      await land();
      expect(await openOrders('maker2')).to.deep.equal(open);
      await publish();
      expect(stack.poster.status().blockedBy).to.equal(null);
      expect(await verify()).to.include({ curves: 2, foldedCurves: 1, fills: 1, foldedOrders: 2 });
    });

    it('is checked by verify: each change of a compacted row is found', async function () {
      this.timeout(120_000);
      await trade(300_000n);
      await pass();
      await compact();
      await verify();
      const found = async (): Promise<string> => {
        const error: unknown = await verify().catch((reason: unknown) => reason);
        return error instanceof VerifyError ? error.check : String(error);
      };
      const rows = await db.knex('folded_orders').select<{ oid: number; filled_units: string }[]>();
      const [row] = rows;
      const where = { oid: row!.oid };
      const set = (change: object) => db.knex('folded_orders').where(where).update(change);
      await set({ filled_units: `${BigInt(row!.filled_units) + 1n}` });
      expect(await found()).to.equal('folded orders');
      await set({ filled_units: row!.filled_units, state: 'filled' });
      expect(await found()).to.equal('folded orders');
      await db.knex('folded_orders').where(where).delete();
      expect(await found()).to.equal('folded orders');
      await db.knex('folded_orders').insert(row!);
      const books = await db.knex('snapshots').select<{ market: number; seq: number; payload: string }[]>();
      for (const { payload, ...key } of books) {
        const book = unpackBook(payload);
        const orders = [...book.asks, ...book.bids];
        for (const order of orders) order.priceTicks += order.priceTicks === 300_000n ? 1n : 0n;
        await db
          .knex('snapshots')
          .where(key)
          .update({ payload: packBook(book) });
      }
      expect(await found()).to.equal('curves');
      for (const { payload, ...key } of books) await db.knex('snapshots').where(key).update({ payload });
      await verify();
      const { orderSeq } = await readCompactionPosition(db.knex);
      const [next] = await readOrderRows(db.knex, { after: orderSeq, limit: 1 });
      await db.knex('order_log').where({ order_seq: next!.orderSeq }).delete();
      await stack.order(chain.address('maker1'), [{ side: 'bid', priceTicks: 200_000n, sizeLots: 1n }]);
      await stack.order(chain.address('maker1'), [{ side: 'bid', priceTicks: 200_000n, sizeLots: 1n }]);
      await db
        .knex('order_log')
        .where({ order_seq: orderSeq + 1 })
        .delete();
      expect(await found()).to.equal('folded orders');
    });
  });
});
