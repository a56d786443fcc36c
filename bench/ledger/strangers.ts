import type { Address } from '../../core/types.js';
import { readPosterView } from '../../keepers/poster/view.js';
import { insertAll } from '../../ledger/db/columns.js';
import { createFollower } from '../../ledger/orders/follower.js';
import { appendOrderRows } from '../../ledger/orders/order-log.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import type { Db } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { loadState } from '../../server/orders/state.js';
import { inRounds, median, medianRatio, ROUNDS, type Row } from '../gateway/measure.js';
import type { Database } from './databases.js';
import { createFeed, makerOf, market } from './feed.js';

const MAKERS = 5;
const strangerOf = (index: number): Address => `0xc${index.toString(16).padStart(39, '0')}`;

/** A ledger whose makers quote, with the rows of `strangers` more accounts that deposited and do nothing. */
async function ledgerWith(database: Database, strangers: number) {
  const { db, drop } = await database.create();
  const feed = await createFeed(db, MAKERS);
  await quote(db);
  await feed.run(1, 1);
  const rows = Array.from({ length: strangers }, (_, index) => ({
    account: strangerOf(index),
    token: market.quote.address,
    generation: 1,
    balance_units: '1',
    reserved_units: '0',
    net_capital_units: '0',
  }));
  await db.knex.transaction((tx) => insertAll(tx, 'balances', rows));
  const markets = [market];
  const [snapshots, follower] = [createSnapshotStore(markets), createFollower(markets)];
  const gateway = await loadState(db);
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const startedMs = performance.now();
    await work();
    return performance.now() - startedMs;
  };
  return {
    cut: () =>
      timed(() =>
        readPosterView(
          { db, markets, snapshots, follower, operator: undefined, triggered: new Map(), operatorFloors: null },
          1,
        ),
      ),
    async follow() {
      await feed.run(1, 1);
      return timed(() => gateway.follow(db));
    },
    async close() {
      await feed.close();
      await drop();
    },
  };
}

async function quote(db: Db): Promise<void> {
  const writer = await acquireWriter(db, 'order');
  const rows = Array.from({ length: MAKERS }, (_, index) => ({
    orderSeq: index + 1,
    timeMs: 1,
    maker: makerOf(index),
    signer: null,
    nonce: null,
    kind: 'order',
    effects: [
      {
        type: 'open' as const,
        oid: index + 1,
        market: market.index,
        side: 'ask' as const,
        priceTicks: 300_000n,
        sizeLots: 1n,
        tif: 'Gtc' as const,
        cloid: null,
      },
    ],
  }));
  await writer.tx((tx) => appendOrderRows(tx, rows));
  await writer.release();
}

/**
 * The cost of what the poster reads at each cut, and the gateway after each generation, with the rows of `strangers` accounts that do not quote and
 * without them. A deposit costs such an account gas once; it must not cost the operator time in every block.
 */
export async function measureStrangers(database: Database, strangers = 100_000): Promise<Row[]> {
  const [crowded, empty] = [await ledgerWith(database, strangers), await ledgerWith(database, 0)];
  try {
    const times = await inRounds(
      { crowdedCut: crowded.cut, emptyCut: empty.cut, crowdedFollow: crowded.follow, emptyFollow: empty.follow },
      ROUNDS,
    );
    const name = `${database.name}, ${strangers.toLocaleString('en-US')} rows of others`;
    const row = (what: string, crowdedMs: readonly number[], emptyMs: readonly number[]): Row[] => [
      {
        goal: 'L4',
        what: `${name}: ${what} / without`,
        value: medianRatio(crowdedMs, emptyMs),
        unit: 'x',
        bound: { atMost: 3 },
      },
      { goal: '', what: `${name}: ${what}`, value: median(crowdedMs), unit: 'ms', bound: null },
    ];
    return [
      ...row('cut', times.crowdedCut, times.emptyCut),
      ...row('gateway follows', times.crowdedFollow, times.emptyFollow),
    ];
  } finally {
    await crowded.close();
    await empty.close();
  }
}
