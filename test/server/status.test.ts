/** The status page and posted curves, over a chain that a watcher and a poster follow. */
import { expect } from 'chai';
import { MaxUint256, parseUnits } from 'ethers';
import { pino } from 'pino';
import { decodeSide, wordsHash } from '../../core/curve/words.js';
import { canonicalSnapshot } from '../../core/snapshot.js';
import { keccak256 } from '../../core/hash.js';
import { parseUnits as toUnits } from '../../core/amounts.js';
import { subticksToPrice, unitsToSize } from '../../core/market.js';
import type { Address, Hex, Market, MarketSnapshot } from '../../core/types.js';
import type { ReversalRow } from '../../ledger/chain/reversals.js';
import { createReadStore } from '../../server/read/store.js';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { judgeReadiness } from '../../keepers/watcher/status.js';
import { planReconcile } from '../../keepers/watcher/reconcile.js';
import { requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { insertHalt } from '../../ledger/chain/halts.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { insertCosts } from '../../ledger/transactions/costs.js';
import { insertOutbox } from '../../ledger/transactions/outbox.js';
import { storeKeeper } from '../../ledger/transactions/senders.js';
import { operatorHaltsSchema } from '../../server/read/accounts/operator-halts.js';
import { decompositionSchema } from '../../server/read/decomposition.js';
import { curveSchema } from '../../server/read/curve.js';
import { statusSchema, STATUS_MAX_AGE_MS } from '../../server/read/status.js';
import { forOneDatabase } from '../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { WETH_DAI, WETH_USDC } from '../support/markets.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
import type { z } from 'zod';

type Status = z.infer<typeof statusSchema>;
type Curve = z.infer<typeof curveSchema>;

const LOTS = 10_000n;

forOneDatabase((name, open) =>
  describe(`status and posted curves on ${name}`, () => {
    let chain: ManualChain;
    let stack: KeeperStack | null = null;
    let server: ReadServer | null = null;
    /** Every look at the status is later than what may be kept. */
    let nowMs = 0;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
    });

    after(() => chain.close());

    afterEach(async () => {
      await server?.close();
      await stack?.stop();
      server = stack = null;
    });

    async function start(): Promise<{ stack: KeeperStack; server: ReadServer }> {
      await chain.reset();
      const keepers = await startKeepers(await open(), chain);
      stack = keepers;
      const { watcher } = keepers;
      server = await startReadServer(keepers.db, keepers.markets, {
        readiness: () => judgeReadiness(watcher.status(), Date.now()),
        halt: () => watcher.status().halt,
        ownLogs: () => new Set(['order', 'ledger', 'publication', 'settlement']),
        replicaLagMs: null,
        nowMs: () => (nowMs += STATUS_MAX_AGE_MS),
        watcher: () => ({
          targetBlock: null,
          head: watcher.status().observedHead,
          nextBlock: watcher.status().nextBlock,
          lastScanMs: watcher.status().lastSuccessfulScanMs,
        }),
      });
      return { stack: keepers, server };
    }

    const status = async (): Promise<Status> => statusSchema.parse((await server!.get('/v0/status')).body);
    const curve = async (seq: number): Promise<Curve> =>
      curveSchema.parse((await server!.get(`/v0/curves/WETH-USDC/${seq}`)).body);
    const halts = async (): Promise<z.infer<typeof operatorHaltsSchema>> =>
      operatorHaltsSchema.parse((await server!.get('/v0/operator/halts')).body);
    const token = (symbol: string): Address =>
      chain.manifest.tokens.find((one) => one.symbol === symbol)!.address.toLowerCase() as Address;

    async function land(): Promise<void> {
      await chain.mine();
      await stack!.watcher.scan();
    }

    async function buy(units: bigint): Promise<void> {
      const taker = chain.address('taker1');
      await chain
        .entrypointAs('taker1')
        .swapExactOutput(token('USDC'), token('WETH'), units, MaxUint256, taker, MaxUint256, {
          gasPrice: parseUnits('3', 'gwei'),
          gasLimit: 1_000_000n,
        });
    }

    const keeperOf = ({ keepers }: Status, role: string) => keepers.find((one) => one.role === role)!;

    it('says where a platform stands that has not scanned anything', async () => {
      const db = await open();
      server = await startReadServer(db, [WETH_USDC, WETH_DAI]);
      const { ready, reason, ledger, curves, keepers, transactions, checkpoint, last_reversal } = await status();
      expect([ready, reason]).to.deep.equal([false, 'missing_canonical_state']);
      expect(ledger).to.deep.equal({
        generation: 0,
        block_number: null,
        block_hash: null,
        scan_age_ms: null,
        suspense: { fills: 0, settlements: 0, executions: 0 },
        head_age_ms: null,
        replica_lag_ms: null,
        holdings: [],
      });
      expect([curves, transactions, checkpoint, last_reversal]).to.deep.equal([[], [], null, null]);
      expect(keepers.map(({ role, running, last_act_ms }) => [role, running, last_act_ms])).to.deep.equal(
        ['gateway', 'watcher', 'poster', 'settler', 'executor'].map((role) => [role, false, null]),
      );
    });

    it('shows curves and keepers as they come and go', async function () {
      this.timeout(60_000);
      const { stack } = await start();
      await land();
      expect((await status()).curves).to.deep.equal([
        {
          pair: 'WETH-USDC',
          state: 'none',
          curve_seq: null,
          deadline_sec: null,
          block_number: null,
          consumed_ask: null,
          consumed_bid: null,
          prepared_seq: 0,
          fill_seq: 0,
        },
      ]);
      await stack.order(chain.address('maker1'), [
        { side: 'ask', priceTicks: 300_000n, sizeLots: 5n * LOTS },
        { side: 'bid', priceTicks: 299_000n, sizeLots: LOTS },
      ]);
      await stack.poster.round();
      const underWay = await status();
      expect([underWay.curves[0]?.state, underWay.curves[0]?.prepared_seq]).to.deep.equal(['none', 1]);
      const poster = chain.address('poster');
      expect(underWay.transactions.find(({ signer }) => signer === poster)?.unmined).to.equal(1);
      await land();
      const live = await status();
      expect(live.curves[0]).to.deep.include({ state: 'live', curve_seq: 1, prepared_seq: 1 });
      expect(live.ledger.holdings.map((one) => one.token)).to.have.members(['WETH', 'USDC']);
      expect(live.ledger.holdings.every((one) => one.unattributed === '0' && one.held !== '0')).to.equal(true);
      expect(keeperOf(live, 'poster').last_act_ms).to.be.a('number');
      // On PostgreSQL the database itself knows; here nobody executes orders.
      expect(live.keepers.filter(({ running }) => running).map(({ role }) => role)).to.deep.equal([
        'gateway',
        'watcher',
        'poster',
        'settler',
      ]);
      await stack.settler.round();
      expect((await status()).checkpoint).to.deep.include({ seq: 1 });
      await chain.provider.send('evm_increaseTime', [60]);
      await land();
      expect((await status()).curves[0]).to.deep.include({ state: 'expired', curve_seq: 1 });
    });

    it('says when an executor last tried or ended an order', async () => {
      const { stack } = await start();
      expect(keeperOf(await status(), 'executor').last_act_ms).to.equal(null);
      await stack.db.knex('swap_attempts').insert({ order_id: 'a', attempt_no: 1, time_ms: 7, result: 'sent' });
      expect(keeperOf(await status(), 'executor').last_act_ms).to.equal(7);
      const end = { order_id: 'a', status: 'expired' as const, code: 'x', message: '', generation: 1, time_ms: 9 };
      await stack.db.knex('swap_outcomes').insert(end);
      expect(keeperOf(await status(), 'executor').last_act_ms).to.equal(9);
    });

    it('notices when another process lets go of a log', async function () {
      const { stack } = await start();
      if (stack.db.kind === 'sqlite') return void expect(keeperOf(await status(), 'executor').running).to.equal(false);
      const swaps = await acquireWriter(stack.db, 'swap');
      expect(keeperOf(await status(), 'executor').running).to.equal(true);
      await swaps.release();
      expect(keeperOf(await status(), 'executor').running).to.equal(false);
    });

    it('shows a posted curve, and the book behind it once it is dead and had a fill', async function () {
      this.timeout(60_000);
      const { stack, server } = await start();
      await land();
      const maker = chain.address('maker1');
      const oids = await stack.order(maker, [
        { side: 'ask', priceTicks: 300_000n, sizeLots: 5n * LOTS },
        { side: 'ask', priceTicks: 300_007n, sizeLots: 3n },
        { side: 'bid', priceTicks: 299_000n, sizeLots: LOTS },
      ]);
      await stack.poster.round();
      expect((await server.get('/v0/curves/WETH-USDC/1')).status, 'prepared only').to.equal(404);
      await land();
      await buy(10n ** 17n);
      await land();
      const live = await curve(1);
      expect([live.state, live.snapshot, live.prepared?.kind]).to.deep.equal(['landed', null, 'full']);

      // More levels than knots, and a fill of the old curve just before the new one lands.
      const rungs = Array.from({ length: 40 }, (_, i) => ({
        side: 'ask' as const,
        priceTicks: 300_100n + 100n * BigInt(i * i),
        sizeLots: LOTS / 10n,
      }));
      await stack.order(maker, rungs, oids.slice(0, 2));
      await buy(35n * 10n ** 16n);
      await stack.poster.round();
      await land();
      const dead = await curve(1);
      expect([dead.state, dead.raised_ask, dead.prepared?.exact_ask_knots]).to.deep.equal(['superseded', '0', 2]);
      const raised = await curve(2);
      expect([raised.state, raised.raised_bid]).to.deep.equal(['landed', '0']);
      const ends = raised.prepared!.asks.map(({ size }) => parseUnits(size, 18));
      const end = ends.reduce((sum, size) => (sum < 35n * 10n ** 16n ? sum + size : sum), 0n);
      expect(parseUnits(raised.raised_ask, 18)).to.equal(end - 35n * 10n ** 16n);
      expect(end).to.be.above(35n * 10n ** 16n);
      // What the landing raised is consumed, and a touch of the curve changes nothing about it.
      expect((await status()).curves[0]).to.deep.include({
        curve_seq: 2,
        consumed_ask: unitsToSize(stack.markets[0] as Market, end),
        consumed_bid: '0',
      });
      await buy(10n ** 16n);
      await land();
      const explained = await server.get('/v0/fills/3/decomposition');
      expect(parseUnits(decompositionSchema.parse(explained.body).consumed_before!, 18)).to.equal(end);
      const market = stack.markets[0] as Market;
      const words = (list: readonly string[] = []) => list.map(BigInt);
      const { ask_words, bid_words, asks, bids, snapshot_hash } = dead.prepared!;
      expect(wordsHash(words(ask_words), words(bid_words))).to.equal(dead.words_hash);
      expect(asks.length + bids.length).to.be.greaterThan(1);
      expect(asks).to.deep.equal(
        decodeSide(market, 'ask', words(ask_words)).map(({ lengthUnits, subticks }) => ({
          size: unitsToSize(market, lengthUnits),
          price: subticksToPrice(market, subticks),
        })),
      );
      expect(keccak256(Buffer.from(canonicalSnapshot(snapshotOf(market, dead))))).to.equal(snapshot_hash);
    });

    it('lists what a reorganisation took back, and who had been told of it', async function () {
      this.timeout(60_000);
      const { stack } = await start();
      await land();
      const maker = chain.address('maker1');
      await stack.order(maker, [{ side: 'ask', priceTicks: 300_000n, sizeLots: LOTS }]);
      await stack.poster.round();
      await land();
      const common = (await chain.provider.send('evm_snapshot', [])) as string;
      await buy(10n ** 17n);
      await land();
      const [told] = await stack.db.knex('order_fills').select<{ tid: number; oid: number }[]>('tid', 'oid');
      await chain.provider.send('evm_revert', [common]);
      await chain.provider.send('evm_increaseTime', [1]);
      for (let block = 0; block < 3; block++) await chain.mine();
      await stack.watcher.scan();
      expect((await status()).halt?.code).to.equal('canonical_mismatch');
      const logger = pino({ level: 'silent' });
      const rpc = createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger });
      const plan = await planReconcile(stack.db, rpc, { deploymentBlock: chain.manifest.deploymentBlock });
      await requestReconcile(stack.db, { reversal: plan!.reversal, capitalOrigin: false }, 1);
      do await stack.watcher.scan();
      while (stack.watcher.status().catchingUp && stack.watcher.status().halt === null);

      const { halt, last_reversal: lost } = await status();
      expect([halt, lost?.fill_count, lost?.event_count]).to.deep.equal([null, 1, 0]);
      expect(lost?.fills[0]).to.deep.include({ pair: 'WETH-USDC', direction: 'buy', base_amount: '0.1' });
      expect(lost?.fills[0]?.notifications).to.deep.equal([
        { maker, oid: told?.oid, tid: told?.tid, price: '3000', size: '0.1' },
      ]);
      const stops = await halts();
      expect(stops.reversals).to.deep.equal([lost]);
      expect(stops.halts.map(({ code, ended_by }) => [code, ended_by])).to.deep.equal([
        ['canonical_mismatch', 'reversal'],
      ]);
      expect(stops.halts[0]?.ended_ms).to.equal(lost?.time_ms);
    });

    it('writes what a reorganisation took back once for all answers of a read', async () => {
      const db = await open();
      const store = createReadStore(db);
      const row = { timeMs: 5, generation: 3, keptGeneration: 1, fromBlock: 7, toBlock: 9, depth: 3 } as ReversalRow;
      let [writings, timeMs] = [0, 1];
      server = await startReadServer(db, [WETH_USDC], {
        nowMs: () => timeMs,
        store: {
          ...store,
          async platform(ms) {
            const { facts, held } = await store.platform(ms);
            const orphans = {
              ...{ custody: [], orders: [] },
              get fills() {
                writings += 1;
                return [];
              },
            };
            return { facts: { ...facts, reversal: { row, orphans } }, held };
          },
        },
      });
      const first = await status();
      expect(first.last_reversal).to.deep.include({ depth: 3, fill_count: 0, fills: [], events: [] });
      const once = writings;
      expect(once).to.be.greaterThan(0);
      for (let i = 0; i < 3; i += 1) expect(await status()).to.deep.equal(first);
      expect(writings).to.equal(once);
      timeMs += STATUS_MAX_AGE_MS;
      expect(await status()).to.deep.equal({ ...first, time_ms: timeMs });
      expect(writings).to.equal(2 * once);
    });

    it('says what each signer spends, and why its newest transaction reverted', async () => {
      const db = await open();
      server = await startReadServer(db, [WETH_USDC], { nowMs: () => (nowMs += STATUS_MAX_AGE_MS) });
      const signer: Address = `0x${'a1'.repeat(20)}`;
      const seenMs = nowMs;
      const sent = { signer, to: signer, raw: '0x' as const, sentMs: 1, validUntilSec: null, maxFeeWei: null };
      const cost = { signer, txKey: 'post:1', blockNumber: 7, gasUsed: 21_000, seenMs, succeeded: true };
      const hash = (nonce: number): Hex => `0x${`${nonce}`.padStart(64, '0')}`;
      await db.knex.transaction(async (tx) => {
        await insertOutbox(tx, { ...sent, txKey: 'post:1', nonce: 0, hash: hash(0) });
        await insertCosts(tx, 'poster', [
          // Before the hour, two reverts within it, and one of which nobody has a receipt.
          { ...cost, nonce: 0, hash: hash(0), feeWei: 5n * 10n ** 18n, seenMs: seenMs - 3_600_000 },
          { ...cost, nonce: 1, hash: hash(1), feeWei: 10n ** 15n, succeeded: false, revertReason: 'StaleSeq' },
          { ...cost, nonce: 2, hash: hash(2), feeWei: 10n ** 15n, succeeded: false, revertReason: 'NotPoster' },
          { ...cost, nonce: 3, hash: hash(3), feeWei: 10n ** 15n },
          { ...cost, nonce: 4, hash: '0x', feeWei: 0n, succeeded: false },
        ]);
        await storeKeeper(tx, 'poster', { signer, budgetWei: 10n ** 17n });
      });
      const { transactions, keepers } = await status();
      expect(transactions).to.deep.equal([
        {
          ...{ signer, role: 'poster', unmined: 1, oldest_sent_ms: 1, spent_last_hour: '0.003' },
          last_revert: { hash: hash(2), block_number: 7, time_ms: seenMs, reason: 'NotPoster' },
        },
      ]);
      expect(keepers.map(({ role, gas }) => [role, gas])).to.deep.equal([
        ['gateway', null],
        ['watcher', null],
        ['poster', { signer, spent_last_hour: '0.003', budget_per_hour: '0.1' }],
        ['settler', { signer: null, spent_last_hour: '0', budget_per_hour: null }],
        ['executor', { signer: null, spent_last_hour: '0', budget_per_hour: null }],
      ]);
    });

    it('lists the halts of the operator, what the watcher found, and what ended each', async () => {
      const db = await open();
      server = await startReadServer(db, [WETH_USDC]);
      const act = (kind: 'halt' | 'resume', timeMs: number) =>
        appendOperatorRow(db, { kind, timeMs, maker: null, note: 'why' });
      await act('halt', 1);
      await act('resume', 2);
      await db.knex.transaction((tx) => insertHalt(tx, { code: 'operator_loss', message: 'so much', timeMs: 3 }));
      await act('resume', 4);
      await act('halt', 5);
      await db.knex.transaction((tx) => insertHalt(tx, { code: 'missing_depth', message: 'less', timeMs: 6 }));
      expect((await halts()).halts.map(({ message: _, ...one }) => Object.values(one))).to.deep.equal([
        ['missing_depth', false, 6, null, null],
        ['operator', true, 5, null, null],
        ['operator_loss', false, 3, 4, 'resume'],
        ['operator', true, 1, 2, 'resume'],
      ]);
    });

    it('reads the logs at most once a second, and again after a failure', async () => {
      const db = await open();
      let reads = 0;
      let clockMs = 5_000;
      const one = await startReadServer(db, [WETH_USDC], { nowMs: () => clockMs });
      server = one;
      const { platform } = one.deps.store;
      let failing = true;
      one.deps.store.platform = async () => {
        reads += 1;
        if (failing) throw new Error('no database');
        return platform(clockMs);
      };
      expect((await fetch(`${one.url}/v0/status`)).status).to.equal(500);
      failing = false;
      await Promise.all([status(), status(), status()]);
      clockMs += STATUS_MAX_AGE_MS - 1;
      await status();
      expect(reads).to.equal(2);
      clockMs += 1;
      expect((await status()).time_ms).to.equal(clockMs);
      expect(reads).to.equal(3);
    });
  }),
);

/** The snapshot that an answer shows, as it is hashed. */
function snapshotOf(market: Market, { snapshot }: Curve): MarketSnapshot {
  const orders = (list: NonNullable<Curve['snapshot']>['asks']) =>
    list.map(({ oid, maker, ticks, lots }) => ({
      oid,
      maker: maker as Address,
      priceTicks: BigInt(ticks),
      sizeLots: BigInt(lots),
    }));
  return {
    market: market.index,
    fillSeq: snapshot!.fill_seq,
    askVolumeUnits: toUnits(snapshot!.ask_volume, market.base.decimals),
    bidVolumeUnits: toUnits(snapshot!.bid_volume, market.base.decimals),
    asks: orders(snapshot!.asks),
    bids: orders(snapshot!.bids),
  };
}
