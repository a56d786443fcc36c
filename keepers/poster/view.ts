import { isArmedWithin, type ArmedMs } from '../../core/cut.js';
import { MAX_SEQ_STEP } from '../../core/curve/post.js';
import type { OperatorFloors } from '../../core/operator-row.js';
import type { ExecutablePublication } from '../../core/exposure.js';
import type { Address, Cut, Market, MarketSnapshot } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import { allOrFirstError } from '../../ledger/db/dialects.js';
import { LogCompactedError } from '../../ledger/errors.js';
import { readExecutable } from '../../ledger/publications/executable.js';
import type { Follower } from '../../ledger/orders/follower.js';
import { accountKey } from '../../ledger/chain/invariants.js';
import { loadLedgerHead, readBalancesOf } from '../../ledger/chain/ledger-log.js';
import { readOperatorState, type OperatorState } from '../../ledger/operator/operator-log.js';
import { readOperatorStandings } from '../../ledger/chain/operator-capital.js';
import { lastOrderSeq } from '../../ledger/orders/order-log.js';
import { wasSigned } from '../../ledger/transactions/outbox.js';
import { landedSeq, lastPublicationSeq, readPublication } from '../../ledger/publications/publication-log.js';
import { takenSeqs } from '../../ledger/publications/seq-resets.js';
import type { SnapshotStore } from '../../ledger/orders/snapshots.js';
import { readDecided, takenUnits } from '../../ledger/chain/suspense.js';
import { readQuarantined } from '../../ledger/chain/token-findings.js';
import type { Db, GenerationRow, Publication, Queryable } from '../../ledger/types.js';
import type { LastPublication } from './plan.js';

/** One market as the poster finds it at a cut. */
export interface MarketView {
  market: Market;
  last: (LastPublication & { publication: Publication }) | null;
  /** The number on the chain as of the last scanned block, 0 before the first curve. */
  landedSeq: number;
  /** Numbers above it, within the contract's step, that were used before the owner gave numbers back. */
  taken: ReadonlySet<number>;
  /** Earlier publications that takers may still execute. */
  older: ExecutablePublication[];
}

/** Everything a round of publishing is computed from, read in one transaction. */
export interface PosterView {
  cut: Cut;
  head: GenerationRow;
  operator: OperatorState;
  /** Makers that the cut leaves out: suspended ones, and those whose scheduled cancel is near or due. */
  excluded: ReadonlySet<Address>;
  armed: ArmedMs;
  /** Newest order row that carried out a scheduled cancel of the maker and that this process read; 0 when there was none. */
  triggeredSeq(maker: Address): number;
  /** Tokens of which the operator's row has too little: their markets are not posted. */
  shortTokens: ReadonlySet<Address>;
  /** Tokens in quarantine: nothing is offered that trades them. */
  quarantined: ReadonlySet<Address>;
  markets: MarketView[];
  /**
   * Balance less reservation, and less what is assigned to it and not booked yet, of a maker with open orders, never below zero; 0 for other
   * accounts.
   */
  availableUnits(maker: Address, token: Address): bigint;
}

export interface ViewDeps {
  db: Db;
  markets: readonly Market[];
  snapshots: SnapshotStore;
  follower: Follower;
  /** Filled as the follower advances. */
  triggered: ReadonlyMap<Address, number>;
  /** State of the last read, so that only later rows are read. */
  operator: OperatorState | undefined;
  /** Null when the operator's row never stops posting. */
  operatorFloors: { operator: Address; floors: OperatorFloors } | null;
}

/** Reads the logs up to now and moves the follower to the same cut. Null before the first generation. */
export async function readPosterView(deps: ViewDeps, timeMs: number): Promise<PosterView | null> {
  return readTx(deps.db, async (q) => {
    const head = await loadLedgerHead(q);
    if (head === null) return null;
    const operator = await readOperatorState(q, deps.operator);
    const cut = { orderSeq: await lastOrderSeq(q), generation: head.generation, timeMs };
    // What is read of all markets at once takes PostgreSQL as many round trips as that of one.
    const markets = await allOrFirstError(
      deps.markets.map((market) => readMarketView(q, deps.snapshots, market, head)),
    );
    await deps.follower.advance(q, cut);
    const taken = takenUnits(await readDecided(q));
    const available = new Map<string, bigint>();
    // Only makers with open orders are read: anybody can create balance rows by deposits.
    for (const row of await readBalancesOf(q, deps.follower.book.makersWithOrders())) {
      const units = row.balanceUnits - row.reservedUnits - (taken.get(accountKey(row)) ?? 0n);
      available.set(accountKey(row), units > 0n ? units : 0n);
    }
    const armed = deps.follower.book.armed();
    const near = [...armed].filter(([, armedMs]) => isArmedWithin(armedMs, timeMs)).map(([maker]) => maker);
    const { markets: listed, operatorFloors } = deps;
    const standings =
      operatorFloors === null ? [] : await readOperatorStandings(q, { ...operatorFloors, markets: listed });
    return {
      cut,
      head,
      operator,
      shortTokens: new Set(standings.filter((one) => one.stopsPosting).map(({ token }) => token.address)),
      quarantined: await readQuarantined(q),
      excluded: new Set([...operator.suspended, ...near]),
      armed: (maker) => armed.get(maker) ?? null,
      triggeredSeq: (maker) => deps.triggered.get(maker) ?? 0,
      markets,
      availableUnits: (maker, token) => available.get(accountKey({ account: maker, token })) ?? 0n,
    };
  });
}

async function readMarketView(
  q: Queryable,
  snapshots: SnapshotStore,
  market: Market,
  head: GenerationRow,
): Promise<MarketView> {
  const last = await readPublication(q, market.index, await lastPublicationSeq(q, market.index));
  const landed = await landedSeq(q, market.index);
  const taken = await takenSeqs(q, { market: market.index, afterSeq: landed, span: MAX_SEQ_STEP });
  snapshots.forget(market.index, landed);
  const older = await readExecutable(q, snapshots, market, head);
  if (last === null) return { market, last: null, landedSeq: landed, taken, older };
  return {
    market,
    landedSeq: landed,
    taken,
    last: {
      seq: last.seq,
      snapshot: await lastSnapshot(q, snapshots, last, head),
      deadlineSec: last.deadlineSec,
      blockNumber: last.blockNumber,
      signed: await wasSigned(q, last.txKey),
      landed: landed === last.seq,
      publication: last,
    },
    older,
  };
}

/** The newest publication's book; null for a dead one whose rows were compacted, on which nothing depends any more. */
async function lastSnapshot(
  q: Queryable,
  snapshots: SnapshotStore,
  last: Publication,
  head: GenerationRow,
): Promise<MarketSnapshot | null> {
  try {
    return await snapshots.get(q, last);
  } catch (error) {
    const isDead = last.deadlineSec * 1_000 <= head.blockTimestampMs;
    if (isDead && error instanceof LogCompactedError) return null;
    throw error;
  }
}
