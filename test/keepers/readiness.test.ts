/** Each reason why inventory is not safe to quote against, brought about on a real chain and database, and its end. */
import { expect } from 'chai';
import { pino } from 'pino';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { createRpc, RpcUnavailableError, type Rpc } from '../../keepers/chain/rpc.js';
import { createRemoteStatus } from '../../keepers/watcher/remote-status.js';
import { judgeReadiness } from '../../keepers/watcher/status.js';
import type { Readiness } from '../../core/types.js';
import { rereadFrom } from '../../ledger/chain/reversals.js';
import { CommitUnknownError } from '../../ledger/errors.js';
import { carryOutReconcile, requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import type { Db } from '../../ledger/types.js';
import { custodyOf, GAS } from '../support/custody.js';
import { forEachDatabase } from '../support/db.js';
import { forksOf } from '../support/nodes/fork.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';

const READY: Readiness = { ready: true, reason: null };
const logger = pino({ level: 'silent' });

forEachDatabase((name, open) =>
  describe(`readiness, ${name}`, function () {
    this.timeout(60_000);
    let chain: ManualChain;
    let stack: KeeperStack;
    /** Of the watcher and of whoever asks it; it stands still unless a test moves it. */
    let nowMs: number;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
    });

    after(() => chain?.close());

    beforeEach(async () => {
      await chain.reset();
      await chain.mine();
      nowMs = (await chain.provider.getBlock('latest'))!.timestamp * 1_000;
      stack = await start(await open());
    });

    function start(db: Db): Promise<KeeperStack> {
      const clock = () => nowMs;
      const pool = createRpcPool([chain.rpcUrl], { nowMs: clock, logger });
      return startKeepers(db, chain, { watcher: { nowMs: clock, rpc: pool, scanMaxBlocks: 50 } });
    }

    afterEach(() => stack.stop());

    const readiness = (): Readiness => judgeReadiness(stack.watcher.status(), nowMs);
    const because = (reason: Readiness['reason']): Readiness => ({ ready: false, reason });

    /** Mines a block of this very moment and scans it. */
    async function land(): Promise<void> {
      await chain.provider.send('evm_setNextBlockTimestamp', [Math.floor(nowMs / 1_000) + 1]);
      await chain.mine();
      nowMs = (await chain.provider.getBlock('latest'))!.timestamp * 1_000;
      await stack.watcher.scan();
    }

    /** One by one: the chain makes up the hashes of blocks that it mines in bulk. */
    async function mine(blocks: number): Promise<void> {
      for (let block = 0; block < blocks; block++) await chain.mine();
    }

    /** As a process of another role sees it, from the database alone. */
    async function remotely(): Promise<Readiness> {
      const stopping = new AbortController();
      const remote = createRemoteStatus({
        db: stack.db,
        markets: [],
        deploymentBlock: chain.manifest.deploymentBlock,
        pollIntervalMs: 1,
        logger,
        onGeneration: () => undefined,
        onReversal: () => undefined,
      });
      const loop = remote.start(stopping.signal);
      // One step is enough; it has ended when the loop has.
      stopping.abort();
      await loop.done;
      return judgeReadiness(remote.status(), nowMs);
    }

    it('missing_canonical_state: nothing was ever scanned', async () => {
      expect(readiness()).to.deep.equal(because('missing_canonical_state'));
      expect(await remotely()).to.deep.equal(because('missing_canonical_state'));
      await land();
      expect(readiness()).to.deep.equal(READY);
      expect(await remotely()).to.deep.equal(READY);
    });

    it('startup_catch_up: more than two blocks behind after a scan', async () => {
      await land();
      await mine(53);
      nowMs = (await chain.provider.getBlock('latest'))!.timestamp * 1_000;
      await stack.watcher.scan();
      expect(readiness(), '3 blocks are left').to.deep.equal(because('startup_catch_up'));
      expect(await remotely()).to.deep.equal(because('startup_catch_up'));
      await stack.watcher.scan();
      expect(readiness()).to.deep.equal(READY);
      await mine(52);
      nowMs = (await chain.provider.getBlock('latest'))!.timestamp * 1_000;
      await stack.watcher.scan();
      expect(readiness(), '2 blocks are left').to.deep.equal(READY);
    });

    it('integrity_halt: the chain has another history, until it is reconciled', async () => {
      await land();
      const forks = forksOf(chain, stack);
      const mark = await forks.mark();
      // Else the block that is mined instead might be the very same one.
      const custody = custodyOf(chain, stack);
      await custody.as('maker1').requestWithdraw(custody.token('WETH'), 1n, GAS);
      await land();
      await forks.fork(mark);
      nowMs = (await chain.provider.getBlock('latest'))!.timestamp * 1_000;
      await stack.watcher.scan();
      expect(readiness()).to.deep.equal(because('integrity_halt'));
      expect(await remotely()).to.deep.equal(because('integrity_halt'));
      await forks.reconcile();
      expect(readiness()).to.deep.equal(READY);
    });

    it('a reversal makes nobody ready by a block that it took back', async () => {
      await land();
      nowMs += 30_000;
      await land();
      const request = (await rereadFrom(stack.db.knex, stack.watcher.status().nextBlock - 1))!;
      expect(await remotely()).to.deep.equal(READY);
      const operator = chain.address('owner');
      // As the watcher does, whose endpoints are silent from then on.
      await stack.db.knex.transaction((tx) =>
        carryOutReconcile(
          tx,
          { reversal: request, capitalOrigin: false, marketData: false },
          { operatorSeq: 1, timeMs: nowMs, operator },
        ),
      );
      expect(await remotely()).to.deep.equal(because('chain_stalled'));
    });

    it('neither a reversal nor a restart of counters passes for a scan', async () => {
      await land();
      await land();
      nowMs += 5_001;
      expect(await remotely()).to.deep.equal(because('stale_ledger'));
      const reversal = (await rereadFrom(stack.db.knex, stack.watcher.status().nextBlock - 1))!;
      const operator = chain.address('owner');
      for (const request of [
        { reversal: null, capitalOrigin: true, marketData: false },
        {
          reversal: { ...reversal, headGeneration: reversal.headGeneration + 1 },
          capitalOrigin: false,
          marketData: false,
        },
      ]) {
        await stack.db.knex.transaction((tx) =>
          carryOutReconcile(tx, request, { operatorSeq: 1, timeMs: nowMs, operator }),
        );
        expect(await remotely(), JSON.stringify(request)).to.deep.equal(because('stale_ledger'));
      }
    });

    it('a reversal whose commit had no answer is one for the process that made it, too', async () => {
      await stack.stop();
      let [reversals, isLost, isSilent] = [0, false, false];
      const clock = () => nowMs;
      const connect = (url: string): Rpc => {
        const rpc = createRpc(url);
        const refused = <T>(answer: () => Promise<T>): Promise<T> =>
          isSilent ? Promise.reject(new RpcUnavailableError('no answer')) : answer();
        return {
          name: rpc.name,
          call: (method, params) => refused(() => rpc.call(method, params)),
          batch: (requests) => refused(() => rpc.batch(requests)),
        };
      };
      stack = await startKeepers(stack.db, chain, {
        watcher: {
          nowMs: clock,
          rpc: createRpcPool([chain.rpcUrl], { nowMs: clock, logger, connect }),
          onReversal: () => void (reversals += 1),
        },
        watcherWriter: (writer) => ({
          ...writer,
          async tx(...steps) {
            const result = await writer.tx(...steps);
            if (isLost) throw new CommitUnknownError('ledger', new Error('the connection is gone'));
            return result;
          },
        }),
      });
      await land();
      nowMs += 30_000;
      await land();
      const reversal = (await rereadFrom(stack.db.knex, stack.watcher.status().nextBlock - 1))!;
      await requestReconcile(stack.db, { reversal, capitalOrigin: false }, nowMs);
      isLost = true;
      expect(await stack.watcher.scan().catch((error: unknown) => error)).to.be.instanceOf(CommitUnknownError);
      [isLost, isSilent] = [false, true];
      expect(await stack.watcher.scan().catch((error: unknown) => error)).to.be.instanceOf(RpcUnavailableError);
      expect([reversals, readiness()]).to.deep.equal([1, because('startup_catch_up')]);
      isSilent = false;
      await stack.watcher.scan();
      expect([reversals, readiness()]).to.deep.equal([1, READY]);
    });

    it('operator_halt: halted on purpose; the ledger goes on following the chain', async () => {
      await land();
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'halt', maker: null, note: 'looking' });
      await land();
      expect(readiness()).to.deep.equal(because('operator_halt'));
      expect(await remotely()).to.deep.equal(because('operator_halt'));
      expect(stack.watcher.status().nextBlock).to.equal((await chain.provider.getBlockNumber()) + 1);
      await appendOperatorRow(stack.db, { timeMs: 2, kind: 'resume', maker: null, note: '' });
      await land();
      expect(readiness()).to.deep.equal(READY);
    });

    it('failed_write: the last generation could not be stored, and nothing of it counts', async () => {
      await land();
      const custody = custodyOf(chain, stack);
      const rename = (from: string, to: string) => stack.db.knex.schema.renameTable(from, to);
      await rename('custody_events', 'lost');
      await custody.as('maker1').requestWithdraw(custody.token('WETH'), 1n, GAS);
      const failed = await land().catch((error: unknown) => error);
      expect(failed).to.be.instanceOf(Error);
      expect(readiness()).to.deep.equal(because('failed_write'));
      expect((await custody.standing('maker1', 'WETH')).reserved).to.equal('0');
      await rename('lost', 'custody_events');
      await stack.watcher.scan();
      expect(readiness()).to.deep.equal(READY);
      expect((await custody.standing('maker1', 'WETH')).reserved).to.equal('0.000000000000000001');
    });

    it('stale_ledger: no successful scan for more than five seconds', async () => {
      await land();
      nowMs += 5_000;
      expect(readiness(), 'at five seconds').to.deep.equal(READY);
      nowMs += 1;
      expect(readiness()).to.deep.equal(because('stale_ledger'));
      expect(await remotely()).to.deep.equal(because('stale_ledger'));
      await stack.watcher.scan();
      expect(readiness(), 'a scan without a new block is one, too').to.deep.equal(READY);
      expect(await remotely(), 'in every process').to.deep.equal(READY);
      await land();
      nowMs += 999;
      await stack.watcher.scan();
      nowMs += 4_002;
      expect([readiness(), await remotely()], 'noted about each second').to.deep.equal([
        READY,
        because('stale_ledger'),
      ]);
    });

    it('chain_stalled: scans go well, and the newest block is older than ten seconds', async () => {
      await land();
      nowMs += 10_000;
      await stack.watcher.scan();
      expect([readiness(), await remotely()], 'at ten seconds').to.deep.equal([READY, READY]);
      nowMs += 1;
      await stack.watcher.scan();
      expect([readiness(), await remotely()]).to.deep.equal([because('chain_stalled'), because('chain_stalled')]);
      await land();
      expect(readiness()).to.deep.equal(READY);
    });

    it('clock_skew: the clock is behind the chain, and all is well at once when it is right again', async () => {
      await land();
      const hourMs = 3_600_000;
      nowMs -= hourMs;
      expect(readiness(), 'before the next scan, too').to.deep.equal(because('clock_skew'));
      expect(await remotely()).to.deep.equal(because('clock_skew'));
      await stack.watcher.scan();
      expect([readiness(), await remotely()]).to.deep.equal([because('clock_skew'), because('clock_skew')]);
      nowMs += hourMs;
      await stack.watcher.scan();
      expect([readiness(), await remotely()]).to.deep.equal([READY, READY]);
    });

    it('a clock that steps an hour ahead and back: not ready meanwhile, and at once afterwards', async () => {
      await land();
      const hourMs = 3_600_000;
      nowMs += hourMs;
      await stack.watcher.scan();
      expect([readiness(), await remotely()]).to.deep.equal([because('chain_stalled'), because('chain_stalled')]);
      nowMs -= hourMs;
      expect(readiness().ready, 'the last scan is of a time to come').to.equal(false);
      await stack.watcher.scan();
      expect([readiness(), await remotely()]).to.deep.equal([READY, READY]);
      nowMs += 5_001;
      expect(readiness(), 'age counts from the scan').to.deep.equal(because('stale_ledger'));
    });

    it('nor does it stay so elsewhere when each scan since has found a block', async () => {
      await land();
      const hourMs = 3_600_000;
      nowMs += hourMs;
      // Finds none, and is noted at the wrong hour.
      await stack.watcher.scan();
      nowMs -= hourMs;
      await land();
      expect([readiness(), await remotely()]).to.deep.equal([READY, READY]);
      await land();
      expect([readiness(), await remotely()]).to.deep.equal([READY, READY]);
    });

    it('nor for a watcher that starts after it', async () => {
      await land();
      nowMs += 3_600_000;
      await stack.watcher.scan();
      nowMs -= 3_600_000;
      await stack.stop();
      stack = await start(stack.db);
      await land();
      expect([readiness(), await remotely()]).to.deep.equal([READY, READY]);
    });
  }),
);
