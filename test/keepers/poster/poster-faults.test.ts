import { expect } from 'chai';
import { Transaction, parseUnits } from 'ethers';
import { pino } from 'pino';
import type { Address } from '../../../core/types.js';
import { WriterLostError } from '../../../ledger/errors.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readPublicationStates } from '../../../ledger/publications/publication-states.js';
import { OUT_OF_DATE } from '../../../keepers/poster/post-call.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import type { Db } from '../../../ledger/types.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import { openDb } from '../../../ledger/db/db.js';
import { startFaultProxy, type Fault, type FaultProxy, type RpcRequestBody } from '../../support/nodes/fault-proxy.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../../support/keeper-stack.js';
import { chainCurve, expectRecordsHold, publicationsOf } from '../../support/publications.js';

const on = (method: string, fault: Fault) => (request: RpcRequestBody) => (request.method === method ? fault : 'pass');
const SEND = 'eth_sendRawTransaction';

forEachDatabase((name, open) =>
  describe(`a poster among faults, ${name}`, function () {
    this.timeout(60_000);
    let chain: ManualChain;
    let proxy: FaultProxy;
    let db: Db;
    let stack: KeeperStack;
    let maker: Address;
    let tick: bigint;

    before(async function () {
      this.timeout(120_000);
      chain = await startManualChain();
      proxy = await startFaultProxy(chain.rpcUrl);
      maker = chain.address('maker1');
    });

    after(async () => {
      await proxy.close();
      await chain.close();
    });

    beforeEach(async () => {
      await chain.reset();
      proxy.fault = null;
      tick = 300_000n;
      db = await open();
      stack = await start();
      await land();
      await requote();
      await stack.poster.round();
      await land();
      expect(await liveSeq()).to.equal(1);
    });

    /** Whatever happened: one curve per seq, every record rebuilds, the chain has what is recorded, nothing halted. */
    afterEach(async () => {
      expect(await readHalt(db.knex)).to.equal(null);
      await expectRecordsHold(stack, chain);
      await stack.stop();
    });

    /** The poster's node is the proxy; one that does not answer at all is waited for as long as by default. */
    const start = (rpcTimeoutMs?: number): Promise<KeeperStack> =>
      startKeepers(db, chain, { posterRpcUrl: proxy.url, rpcTimeoutMs });

    async function land(): Promise<void> {
      await chain.mine();
      await stack.watcher.scan();
    }

    let resting: number[] = [];
    /** The maker moves its quote, so that a new curve is due. */
    async function requote(): Promise<void> {
      const isOpen = stack.poster.status().generation > 0;
      tick += 7n;
      const quote = { priceTicks: tick, sizeLots: 1_000n };
      resting = await stack.order(maker, [{ side: 'ask', ...quote }], isOpen ? resting : []);
    }

    const liveSeq = async (): Promise<number> => (await chainCurve(chain, stack.markets[0]!)).seq;
    const lastSeq = async (): Promise<number> => (await publicationsOf(stack)).at(-1)!.seq;
    const failing = (): Promise<unknown> =>
      stack.poster.round().then(
        () => null,
        (error: unknown) => error,
      );

    /** Ends the poster where it is, as a kill does: what it had in memory is gone. */
    async function kill(): Promise<void> {
      await stack.stop();
      proxy.fault = null;
      stack = await start();
      await stack.watcher.scan();
    }

    async function untilLive(seq: number, rounds = 4): Promise<void> {
      for (let i = 0; i < rounds && (await liveSeq()) < seq; i++) {
        await stack.poster.round();
        await land();
      }
      expect(await liveSeq()).to.be.at.least(seq);
    }

    it('gets over a node that does not answer', async () => {
      await stack.stop();
      stack = await start(1_500);
      await stack.watcher.scan();
      await requote();
      for (const fault of ['hang', 'reset'] as const) {
        proxy.fault = () => fault;
        expect(await failing()).to.be.instanceOf(Error);
        await land();
      }
      proxy.fault = null;
      await untilLive(2);
    });

    for (const [step, fault] of [
      ['before it was signed', on('eth_getTransactionCount', 'reset')],
      ['after it was stored and before it was sent', on(SEND, 'reset')],
      ['after it was sent and before it was answered', on(SEND, 'lose')],
    ] as const) {
      it(`goes on after a kill ${step}`, async () => {
        await requote();
        // The first call of a round settles earlier transactions, so the fault begins with the cut.
        await stack.poster.round();
        await land();
        await requote();
        await land();
        let asked = 0;
        proxy.fault = (request) =>
          request.method === 'eth_getTransactionCount' && asked++ === 0 ? 'pass' : fault(request);
        expect(await failing()).to.be.instanceOf(Error);
        expect(await lastSeq()).to.equal(3);
        const before = await publicationsOf(stack);
        await kill();
        await untilLive(3);
        await land();
        await untilLive(3);
        expect((await publicationsOf(stack)).slice(0, 3)).to.deep.equal(before);
      });
    }

    it('goes on after a kill between two rounds, and after one while a transaction waits', async () => {
      await kill();
      await requote();
      await stack.poster.round();
      await kill();
      await untilLive(2);
    });

    it('gets over a node that answers old and future nonces', async () => {
      for (const wrong of ['0x0', '0x40']) {
        await requote();
        await land();
        proxy.fault = on('eth_getTransactionCount', { result: wrong });
        await failing();
        await land();
        proxy.fault = null;
        await requote();
        await untilLive(await lastSeq());
      }
    });

    it('sends a dropped transaction again, unchanged, and then anew', async () => {
      await requote();
      proxy.fault = on(SEND, { result: `0x${'1'.repeat(64)}` });
      await stack.poster.round();
      await land();
      proxy.fault = null;
      expect(await stack.poster.round()).to.equal(null);
      expect(proxy.count(SEND)).to.be.at.least(2);
      await land();
      expect(await liveSeq()).to.equal(2);
    });

    it('puts a newer curve in the place of an unmined one, and what is mined late does no harm', async () => {
      await requote();
      const held: string[] = [];
      proxy.fault = (request) => {
        if (request.method !== SEND) return 'pass';
        held.push(String(request.params[0]));
        return { result: `0x${'1'.repeat(64)}` };
      };
      await stack.poster.round();
      await land();
      await requote();
      await stack.poster.round();
      const nonces = held.map((raw) => Transaction.from(raw).nonce);
      expect(new Set(nonces).size).to.equal(1);
      expect(stack.poster.status().transactions.replacements).to.equal(1);

      // The first one turns up after all, and is mined.
      proxy.fault = null;
      await chain.provider.send(SEND, [held[0]]);
      await land();
      expect(await liveSeq()).to.equal(2);
      const states = await readPublicationStates(db.knex, { market: 0, afterSeq: 0, limit: 10, headSec: 0 });
      expect(states.map(({ state }) => state)).to.deep.equal(['superseded', 'landed', 'sent']);
      await untilLive(4);
      await requote();
      await untilLive(await lastSeq());
    });

    it('goes on at the next nonce when another transaction took its own', async () => {
      await requote();
      proxy.fault = on(SEND, { result: `0x${'1'.repeat(64)}` });
      await stack.poster.round();
      proxy.fault = null;
      const poster = chain.wallet('poster');
      await poster.sendTransaction({ to: poster.address, gasLimit: 21_000n, gasPrice: parseUnits('50', 'gwei') });
      await land();
      await untilLive(await lastSeq());
    });

    it('counts a reverted post, and posts the curve anew', async () => {
      await requote();
      await stack.poster.round();
      // It is mined after its deadline.
      await chain.provider.send('evm_increaseTime', [100]);
      await land();
      expect(await liveSeq()).to.equal(1);
      await untilLive(3);
      await stack.poster.round();
      expect(stack.poster.status().transactions.reverted).to.equal(1);
      expect(stack.poster.status().fees.spentLastHourWei > 0n).to.equal(true);
    });

    it('takes no number of posts that came too late for a fault', async () => {
      for (let late = 1; late <= 3; late++) {
        await requote();
        expect(await stack.poster.round(), `before ${late}`).not.to.equal(null);
        await chain.provider.send('evm_increaseTime', [100]);
        await land();
        // Sees what became of it; the next one is not mined in time, either.
        proxy.fault = on(SEND, { result: `0x${'1'.repeat(64)}` });
        await stack.poster.round();
        proxy.fault = null;
        const { transactions, blockedBy, lastRevert } = stack.poster.status();
        expect([transactions.reverted, blockedBy]).to.deep.equal([late, null]);
        expect(OUT_OF_DATE).to.include(lastRevert);
        await untilLive((await liveSeq()) + 1, 6);
      }
    });

    it('posts nothing while the chain stands still, lets the curve die, and posts again afterwards', async () => {
      await stack.stop();
      let stalled = true;
      const readiness = () => ({ ready: !stalled, reason: stalled ? 'chain_stalled' : null });
      stack = await startKeepers(db, chain, { poster: { readiness } });
      await requote();
      expect(await stack.poster.round()).to.equal(null);
      expect(stack.poster.status().blockedBy).to.equal('chain_stalled');
      await chain.provider.send('evm_increaseTime', [60]);
      await land();
      const { deadlineSec } = await chainCurve(chain, stack.markets[0]!);
      expect((await chain.provider.getBlock('latest'))!.timestamp).to.be.at.least(deadlineSec);
      expect(await stack.poster.round()).to.equal(null);
      stalled = false;
      await untilLive(2);
      expect(stack.poster.status().blockedBy).to.equal(null);
    });

    it('names no obstacle that is gone, though its node takes no transaction yet', async () => {
      await stack.stop();
      let reason: string | null = 'chain_stalled';
      const readiness = () => ({ ready: reason === null, reason });
      stack = await startKeepers(db, chain, { posterRpcUrl: proxy.url, rpcTimeoutMs: 300, poster: { readiness } });
      await requote();
      await land();
      expect(await stack.poster.round()).to.equal(null);
      expect(stack.poster.status().blockedBy).to.equal('chain_stalled');
      reason = null;
      proxy.fault = on(SEND, 'reset');
      expect(await failing()).to.be.instanceOf(Error);
      expect(stack.poster.status().blockedBy).to.equal(null);
      proxy.fault = null;
      await land();
      await untilLive(2);
    });

    it('posts nothing once its hourly budget is spent, whoever spent it', async () => {
      await requote();
      await untilLive(2);
      await land();
      await stack.poster.round();
      await stack.stop();
      stack = await startKeepers(db, chain, { poster: { budgetWei: 1n } });
      await requote();
      await land();
      expect(await stack.poster.round()).to.equal(null);
      expect(stack.poster.status().blockedBy).to.equal('budget_spent');
      await stack.stop();
      stack = await startKeepers(db, chain, { nowMs: () => Date.now() + 3_700_000, poster: { budgetWei: 1n } });
      await stack.watcher.scan();
      expect(await stack.poster.round()).to.not.equal(null);
    });

    it('posts nothing while gas is dearer than the ceiling', async () => {
      await stack.stop();
      const said: unknown[] = [];
      const write = (line: string): void => void said.push((JSON.parse(line) as { reason: unknown }).reason);
      const poster = { logger: pino({ level: 'info' }, { write }) };
      stack = await startKeepers(db, chain, { feeCeilingWei: 1n, poster });
      await requote();
      for (let blocks = 0; blocks < 3; blocks++) {
        await land();
        expect(await stack.poster.round()).to.equal(null);
        expect(stack.poster.status().blockedBy).to.equal('fee_ceiling');
      }
      expect(said, 'said once').to.deep.equal(['fee_ceiling']);
      await stack.stop();
      stack = await start();
      await stack.watcher.scan();
      await untilLive(await lastSeq());
    });

    it('lets one of two posters publish', async () => {
      const { url, schema } = locationOf(db);
      const otherDb = await openDb(url, { schema });
      try {
        const asked = new AbortController();
        const taking = acquireWriter(otherDb, 'publication', { signal: asked.signal, pollMs: 20 });
        if (db.kind === 'pg') {
          // The second stands by for as long as the first one lives.
          const first = await Promise.race([taking, new Promise((resolve) => setTimeout(resolve, 300, 'waiting'))]);
          expect(first).to.equal('waiting');
          await requote();
          await untilLive(2);
          await stack.stop();
          await (await taking).release();
        } else {
          // The second takes over at once, and the first one writes nothing any more.
          const second = await taking;
          await requote();
          await land();
          expect(await failing()).to.be.instanceOf(WriterLostError);
          expect(await lastSeq()).to.equal(1);
          await stack.stop();
          await second.release();
        }
        asked.abort();
        stack = await start();
        await stack.watcher.scan();
        await requote();
        await untilLive(await lastSeq());
      } finally {
        await otherDb.close();
      }
    });
  }),
);
