/** An endpoint that shows an old block as the newest one can neither stop the ledger nor make it look fresh. */
import { expect } from 'chai';
import { pino } from 'pino';
import type { Hex } from '../../../core/types.js';
import { headerHash } from '../../../keepers/chain/header-hash.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import { toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { judgeReadiness } from '../../../keepers/watcher/status.js';
import type { Db } from '../../../ledger/types.js';
import { createSite, type Site } from '../../support/archive.js';
import { forOneDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';

type Header = Record<string, unknown> & { number: Hex; hash: Hex; timestamp: Hex };

forOneDatabase((name, open) => {
  describe(`an endpoint that stands still, ${name}`, function () {
    this.timeout(60_000);
    let site: Site;
    let db: Db;
    let stack: KeeperStack;
    let pool: RpcPool;
    let nowMs: number;
    let newest: Header | null;

    async function start(endpoints: number): Promise<void> {
      site = createSite();
      newest = null;
      const behind = site.chain.rpc;
      /** Everything but its newest block is the truth. */
      const call: Rpc['call'] = async (method, params = []) =>
        method === 'eth_getBlockByNumber' &&
        newest !== null &&
        (params[0] === 'latest' || Number(params[0]) === Number(newest.number))
          ? newest
          : behind.call(method, params);
      const frozen: Rpc = {
        name: 'frozen',
        call,
        batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))),
      };
      const names = Array.from({ length: endpoints }, (_, i) => `${i}`);
      pool = createRpcPool(names, {
        nowMs: () => nowMs,
        logger: pino({ level: 'silent' }),
        connect: (url) => (url === '0' ? frozen : { ...behind, name: url }),
      });
      db = await open();
      nowMs = Date.now();
      stack = await site.start(db, { watcher: { rpc: pool, nowMs: () => nowMs, monotonicMs: () => nowMs } });
      await site.mine(3);
      await follow();
      nowMs = Number((await head()).timestamp) * 1_000;
      await stack.watcher.scan();
      expect(ready()).to.equal(true);
    }

    afterEach(async () => {
      await stack.stop();
      site.close();
    });

    const head = async (): Promise<Header> =>
      (await site.chain.rpc.call('eth_getBlockByNumber', ['latest', false])) as Header;
    const ready = (): boolean => judgeReadiness(stack.watcher.status(), nowMs).ready;
    async function follow(): Promise<void> {
      while (stack.watcher.status().nextBlock <= (await site.headBlock())) await stack.watcher.scan();
    }

    for (const count of [2, 3]) {
      for (const isForged of [true, false]) {
        const how = isForged ? 'as if it came now' : 'as it is';
        it(`shows the last block ${how}, and is passed over in the same step for one of ${count}`, async () => {
          await start(count);
          newest = await head();
          await site.mine(4);
          nowMs += 8_000;
          if (isForged) newest = { ...newest, timestamp: toQuantity(nowMs / 1_000) };
          await stack.watcher.scan();
          expect(stack.watcher.status().nextBlock).to.equal((await site.headBlock()) + 1);
          expect(pool.health()[0]).to.include({ healthy: false });
          expect(pool.health()[0]?.counts.contradiction).to.equal(1);
        });
      }

      it(`does not make a chain that stands still look alive, with ${count}`, async () => {
        await start(count);
        const last = await head();
        nowMs += 11_000;
        const now = toQuantity(nowMs / 1_000);
        const made = { ...last, number: toQuantity(Number(last.number) + 1), parentHash: last.hash, timestamp: now };
        for (const lie of [
          { ...last, timestamp: now },
          { ...made, hash: headerHash(made) },
        ]) {
          newest = lie;
          await stack.watcher.scan().catch(() => undefined);
          expect(ready()).to.equal(false);
          expect(stack.watcher.status().observedHeadTimestampMs).to.equal(Number(last.timestamp) * 1_000);
          nowMs += 120_000;
        }
      });
    }

    it('is believed after a restart only with the timestamp that its hash is of', async () => {
      await start(2);
      newest = { ...(await head()), timestamp: toQuantity(nowMs / 1_000 + 11) };
      nowMs += 11_000;
      await stack.stop();
      stack = await site.start(db, { watcher: { rpc: pool, nowMs: () => nowMs, monotonicMs: () => nowMs } });
      await stack.watcher.scan();
      expect(ready()).to.equal(false);
      expect(pool.health()[0]?.counts.contradiction).to.equal(1);
    });
  });
});
