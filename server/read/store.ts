import { NOTHING_RAISED } from '../../core/attribution.js';
import { custodyEventsOf, readClaimsOf, readTakerFees } from '../../ledger/chain/claims.js';
import { readTx } from '../../ledger/db/db.js';
import { fillWithLegs, lastGeneration, makerBalances, newestFill } from '../../ledger/views/reads.js';
import { fillsPage, makerFillsPage, takerSwapsPage } from '../../ledger/market-data/history.js';
import { operatorSummary } from '../../ledger/accounts/operator.js';
import { makerActivity, takerActivity } from '../../ledger/accounts/reads.js';
import { candlesBetween } from '../../ledger/market-data/reads.js';
import { readSnapshot } from '../../ledger/chain/ledger-log.js';
import { readLogHolders } from '../../ledger/db/writers.js';
import { readPlatform } from '../../ledger/views/platform.js';
import { readStops } from '../../ledger/views/stops.js';
import { readPosted, raisedBy } from '../../ledger/publications/raises.js';
import {
  landedSeq,
  readPostSeen,
  readPublication,
  readPublications,
} from '../../ledger/publications/publication-log.js';
import { lastSettlements } from '../../ledger/settlements/settlement-log.js';
import type { Db, LogName, Queryable } from '../../ledger/types.js';
import { createAccountStates } from './account-states.js';
import type { PostedCurve, ReadStore } from './deps.js';

/** Logs that a role holds while it runs; the operator log is held by commands only. */
const LOGS: readonly LogName[] = ['order', 'ledger', 'publication', 'settlement', 'swap'];

/** The read API's view of the database. Each answer is of one state, even while a generation commits. */
export function createReadStore(db: Db): ReadStore {
  return {
    accountState: createAccountStates(db),
    fillsPage: (page) => fillsPage(db.reads, page),
    makerFills: (page) => makerFillsPage(db.reads, page),
    takerSwaps: (page) => readTx(db, (tx) => takerSwapsPage(tx, page)),
    makerActivity: (maker, markets, span) => readTx(db, (tx) => makerActivity(tx, maker, markets, span)),
    operatorSummary: (markets, of) => readTx(db, (tx) => operatorSummary(tx, markets, of)),
    takerActivity: (taker, span) => readTx(db, (tx) => takerActivity(tx, taker, span)),
    candles: (range) => readTx(db, (tx) => candlesBetween(tx, range)),
    newestFill: (market) => newestFill(db.reads, market),
    newestFills: (market, limit) =>
      readTx(db, async (tx) => ({
        key: await newestFill(tx, market),
        fills: await fillsPage(tx, { market, limit }),
      })),
    ledgerVersion: async () => {
      const newest = await lastGeneration(db.reads);
      return newest === null ? '' : `${newest.generation}:${newest.blockHash}`;
    },
    takerFees: () => readTakerFees(db.reads),
    withdrawals: (account, limit, settledSinceMs) =>
      readTx(db, async (tx) => {
        const claims = await readClaimsOf(tx, [account]);
        return {
          claims,
          balances: await makerBalances(tx, account),
          settledMs: await lastSettlements(tx, settledSinceMs, account),
          events: await custodyEventsOf(tx, account, limit),
        };
      }),
    platform: async (nowMs) => ({
      facts: await readTx(db, (tx) => readPlatform(tx, nowMs)),
      held: await readLogHolders(db, LOGS),
    }),
    stops: (limits) => readTx(db, (tx) => readStops(tx, limits)),
    postedCurve: (market, seq) => readTx(db, (tx) => postedCurve(tx, market, seq)),
    explainedFill: (market, fillSeq) => readTx(db, (tx) => fillWithLegs(tx, market, fillSeq)),
  };
}

/** More curves than are under way at a time. */
const UNDER_WAY_MAX = 100;

async function postedCurve(q: Queryable, market: number, seq: number): Promise<PostedCurve | null> {
  const post = await readPostSeen(q, market, seq);
  if (post === null) return null;
  const head = await lastGeneration(q);
  const headSec = Math.floor((head?.blockTimestampMs ?? 0) / 1_000);
  const publication = await readPublication(q, market, seq);
  const posted = await readPosted(q, market, seq);
  const landed = await landedSeq(q, market);
  const range = { market, afterSeq: Math.max(seq, landed - 1), limit: UNDER_WAY_MAX };
  const later = publication === null ? [] : await readPublications(q, range);
  return {
    post,
    publication,
    raised: publication === null || posted === null ? NOTHING_RAISED : raisedBy(publication, posted),
    snapshot: await readSnapshot(q, market, seq),
    isProlonged: later.some((one) => one.snapshotHash === publication?.snapshotHash && one.deadlineSec > headSec),
    landedSeq: landed,
    headSec,
  };
}
