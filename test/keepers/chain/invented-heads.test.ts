/** An endpoint that shows blocks which nobody else has: the ledger goes as far as a majority does, and says that it is there. */
import { expect } from 'chai';
import { pino } from 'pino';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { judgeReadiness } from '../../../keepers/watcher/status.js';
import { loadLedgerHead } from '../../../ledger/chain/ledger-log.js';
import type { Db } from '../../../ledger/types.js';
import { createSite, type Site } from '../../support/archive.js';
import { forOneDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';
import { resealed, type RpcHeaderAnswer } from '../../support/nodes/real-blocks.js';

const AHEAD = 1_000;

forOneDatabase((name, open) => {
  describe(`an endpoint that is ahead of the chain, ${name}`, function () {
    this.timeout(60_000);
    let site: Site;
    let db: Db;
    let stack: KeeperStack;
    let nowMs: number;
    let isLying: boolean;
    let asked: number;

    afterEach(async () => {
      await stack.stop();
      site.close();
    });

    const headOf = async (rpc: Rpc): Promise<RpcHeaderAnswer> =>
      (await rpc.call('eth_getBlockByNumber', ['latest', false])) as RpcHeaderAnswer;

    /** The truth, and a thousand blocks on top of it whose headers hash to themselves and name each other. */
    function inventing(behind: Rpc): Rpc {
      async function invented(to: number): Promise<RpcHeaderAnswer> {
        let block = await headOf(behind);
        for (let number = Number(block.number) + 1; number <= to; number += 1)
          block = resealed(block, { number: toQuantity(number), parentHash: block.hash });
        return block;
      }
      async function call(method: string, params: unknown[] = []): Promise<unknown> {
        asked += 1;
        if (!isLying) return behind.call(method, params);
        const head = Number(await behind.call('eth_blockNumber'));
        if (method === 'eth_blockNumber') return toQuantity(head + AHEAD);
        if (method !== 'eth_getBlockByNumber') return behind.call(method, params);
        const number = params[0] === 'latest' ? head + AHEAD : Number(params[0]);
        return number <= head ? behind.call(method, params) : invented(number);
      }
      return { name: 'liar', call, batch: (all) => Promise.all(all.map(({ method, params }) => call(method, params))) };
    }

    for (const count of [2, 3]) {
      it(`of one of ${count} is no reason to call the ledger behind, or to look without a pause`, async () => {
        [isLying, asked] = [false, 0];
        site = createSite();
        const behind = site.chain.rpc;
        const liar = inventing(behind);
        const names = Array.from({ length: count }, (_, i) => `${i}`);
        const pool = createRpcPool(names, {
          nowMs: () => nowMs,
          logger: pino({ level: 'silent' }),
          connect: (url) => (url === '0' ? liar : { ...behind, name: url }),
        });
        db = await open();
        nowMs = Date.now();
        const watcher = { rpc: pool, nowMs: () => nowMs, monotonicMs: () => nowMs };
        stack = await site.start(db, { watcher });
        await site.mine(3);
        while (stack.watcher.status().nextBlock <= (await site.headBlock())) await stack.watcher.scan();
        isLying = true;
        for (let block = 0; block < 3; block += 1) {
          await site.mine();
          nowMs = Number((await headOf(behind))['timestamp']) * 1_000;
          // The second look finds no new block.
          for (const look of ['with a block', 'without one']) {
            await stack.watcher.scan();
            const status = stack.watcher.status();
            expect(status.nextBlock, look).to.equal((await site.headBlock()) + 1);
            expect(judgeReadiness(status, nowMs), look).to.deep.equal({ ready: true, reason: null });
            expect(status.observedHead, look).to.equal(await site.headBlock());
          }
          expect(asked, 'of the liar: not for all that it shows').to.be.lessThan(50);
          asked = 0;
          const stored = (await loadLedgerHead(db.knex))!;
          expect(stored.observedHead, 'as other processes see it').to.equal(stored.toBlock);
        }
      });
    }
  });
});
