/** The ledger log: one generation per scan of the chain, committed whole or not at all. */
import { toSafeInt } from '../../core/amounts.js';
import { readNotedScan, lastGeneration, readGeneration } from './generations.js';
import type { Knex } from 'knex';
import type { Address, OrderFill } from '../../core/types.js';
import { applyToBalances, insertChanges, loadTouched, storeBalances } from './balances.js';
import { liveRanges, rangesAfter } from './branches.js';
import { insertTakerFees, readAccruedFees, storeClaims } from './claims.js';
import { checkLimit, fromColumn, insertAll, toColumn } from '../db/columns.js';
import { sendForRows, allOrFirstError } from '../db/dialects.js';
import { LedgerInvariantError, isUniqueViolation } from '../errors.js';
import { compactFills, insertEntries } from './fill-postings.js';
import { insertFills } from './fills.js';
import { groupBy } from '../db/lists.js';
import { insertHalt } from './halts.js';
import { checkBlocks, checkClaims, checkEntries, checkFills, checkHoldings, checkListed } from './invariants.js';
import { insertMarkets, readMarkets } from './markets.js';
import { marketDataAfter, storeMarketData, type MarketDataChange } from '../market-data/projection.js';
import { middlesOf, readPreparedWords } from '../accounts/middles.js';
import { activityOf, addActivity, readActivityFacts } from '../accounts/projection.js';
import { pairGainsAfter, storePairGains } from './pair-gains.js';
import { nameRefs } from './refs.js';
import { checkContinues, readOrphanedRows, readReversals } from './reversals.js';
import { insertSnapshots } from './snapshots.js';
import { insertSettledOrders } from './settled-orders.js';
import { insertTokenFindings } from './token-findings.js';
import { insertSuspense } from './suspense.js';
import { insertSeqResets } from '../publications/seq-resets.js';
import type { Db, GenerationEffects, GenerationRow, GenerationWrite, MarketProgress, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

export { readBalances, readBalancesAfter, readBalancesOf, sumBalances } from './balances.js';
export { lastGeneration } from './generations.js';
export { insertHalt, readHalt } from './halts.js';
export { readMarkets } from './markets.js';
export { readSnapshot } from './snapshots.js';

/** The last generation. */
interface LedgerHead extends GenerationRow {
  /** When the chain was last scanned with success, whether or not that added the generation. */
  lastScanMs: number;
}

/** The steps of a generation's commit: `read` may be sent together with the fence, see `Writer`. */
interface GenerationSteps {
  read(tx: Knex.Transaction): Promise<void>;
  write(tx: Knex.Transaction): Promise<'committed' | 'replayed'>;
}

/**
 * Commits one generation inside a transaction of the ledger log's writer: cursor, blocks, events, fills with their legs, postings,
 * balances, snapshots, halt. A generation that is already stored and ends at the same block stays unchanged (`replayed`). Throws
 * LedgerInvariantError, with nothing written, when the generation contradicts itself or the ledger.
 */
export function generationSteps(write: GenerationWrite, { operator }: { operator: Address }): GenerationSteps {
  let before: Before | null = null;
  return {
    async read(tx) {
      before = await readBefore(tx, write);
    },
    async write(tx) {
      if (before === null) throw new TypeError('a generation is read for before it is written');
      const read = before;
      before = null;
      return commitAfter(tx, write, read, operator);
    },
  };
}

/** Both of `generationSteps`, one after the other. */
export async function commitGeneration(
  tx: Knex.Transaction,
  _db: Db,
  write: GenerationWrite,
  options: { operator: Address },
): Promise<'committed' | 'replayed'> {
  const steps = generationSteps(write, options);
  await steps.read(tx);
  return steps.write(tx);
}

type Before = Awaited<ReturnType<typeof readBefore>>;

/** All that is read before anything is checked, in one round trip. */
async function readBefore(tx: Knex.Transaction, write: GenerationWrite) {
  const [head, markets, progress, named, touched, traded, accrued, facts, prepared] = await allOrFirstError([
    lastGeneration(tx),
    readMarkets(tx),
    readProgressBefore(tx, write),
    namesOf(tx, write),
    loadTouched(tx, write),
    tradedAfter(tx, write),
    readAccruedFees(tx, write),
    readActivityFacts(tx, write),
    readPreparedWords(tx, write.posts),
  ]);
  return { head, markets, progress, named, touched, traded, accrued, facts, prepared };
}

async function commitAfter(
  tx: Knex.Transaction,
  write: GenerationWrite,
  before: Before,
  operator: Address,
): Promise<'committed' | 'replayed'> {
  const { head, markets, named, touched } = before;
  if (head !== null && write.generation <= head.generation) return checkReplay(tx, write);
  checkBlocks(write, head);
  checkListed(write.listed, markets.length);
  markets.push(...write.listed);
  const progress = checkFills(write.fills, markets, before.progress);
  if (before.traded instanceof TypeError) throw before.traded;
  const marketData = before.traded;
  checkEntries(write, markets, operator);
  if ('error' in named) throw named.error;
  const { names } = named;
  const starts = applyToBalances(touched, write, markets, operator);
  checkClaims(write, touched);
  checkHoldings(write, touched);
  const compact = compactFills(write, markets, { names, operator });
  const middles = middlesOf(before.prepared, markets, write.posts);
  const { details } = marketData;
  const beforeMs = head?.blockTimestampMs ?? null;
  // What is read of all that the generation names, before anything of it is stored.
  const [gains, activity] = await allOrFirstError([
    pairGainsAfter(tx, write, markets),
    activityOf(tx, write, { facts: before.facts, markets, details, middles, beforeMs }),
  ]);
  try {
    await allOrFirstError([
      insertScan(tx, write, middles),
      insertMarkets(tx, write.listed, write.generation, write.listings),
      insertTokenFindings(tx, write.generation, write.findings ?? []),
      insertFills(tx, write, markets, { starts, details, compact, operator }),
      storeMarketData(tx, write.generation, marketData),
      insertSettledOrders(tx, write.generation, write.settledOrders ?? []),
      insertProgress(tx, write.generation, progress),
      insertEntries(tx, write, { names, compact }),
      insertChanges(tx, write),
      storeBalances(tx, touched, write),
      storeClaims(tx, write.claims, write.generation),
      insertSuspense(tx, write),
      insertSeqResets(tx, write),
      insertTakerFees(tx, write, before.accrued),
      storePairGains(tx, write.generation, gains),
      addActivity(tx, activity),
    ]);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    // On PostgreSQL the text is that of any of the statements that were sent together; the table is the one that has the row.
    const { table, message } = error as Error & { table?: string };
    const where = table === undefined ? '' : ` of ${table}`;
    throw new LedgerInvariantError('duplicate_row', `generation ${write.generation} repeats a row${where}: ${message}`);
  }
  return 'committed';
}

/** What the fills change of the market data. Fills that contradict themselves make no sense here: the checks say what is wrong with them. */
const tradedAfter = (tx: Knex.Transaction, { fills }: GenerationWrite): Promise<MarketDataChange | TypeError> =>
  marketDataAfter(tx, fills).catch((error: unknown) => {
    if (error instanceof TypeError) return error;
    throw error;
  });

/**
 * The names of a generation's postings, or why they have none: those of one that is stored already are taken, and that is no fault. An error of
 * the database is thrown at once, since it fails all statements after it.
 */
const namesOf = (
  tx: Knex.Transaction,
  { entries }: GenerationWrite,
): Promise<{ names: ReadonlyMap<string, string> } | { error: unknown }> =>
  nameRefs(
    tx,
    entries.map(({ ref }) => ref),
  ).then(
    (names) => ({ names }),
    (error: unknown) => {
      if (error instanceof LedgerInvariantError) return { error };
      throw error;
    },
  );

async function checkReplay(tx: Knex.Transaction, write: GenerationWrite): Promise<'replayed'> {
  const stored = await readGeneration(tx, write.generation);
  const same =
    stored !== null &&
    stored.fromBlock === write.fromBlock &&
    stored.toBlock === write.toBlock &&
    stored.blockHash === write.blocks.at(-1)?.hash;
  if (same) return 'replayed';
  throw new LedgerInvariantError(
    'generation_conflict',
    `generation ${write.generation} is committed with other blocks`,
  );
}

async function insertScan(
  tx: Knex.Transaction,
  write: GenerationWrite,
  middles: readonly (bigint | null)[],
): Promise<void> {
  const { generation } = write;
  const last = write.blocks.at(-1)!;
  const scan: Stored<'generations'> = {
    generation,
    from_block: write.fromBlock,
    to_block: write.toBlock,
    block_hash: last.hash,
    block_timestamp_ms: last.timestampSec * 1_000,
    scanned_ms: write.scannedMs,
    observed_head: write.observedHead,
    observed_head_timestamp_ms: write.observedHeadTimestampMs,
  };
  const blocks = write.blocks.map((block) => ({
    number: block.number,
    hash: block.hash,
    parent_hash: block.parentHash,
    timestamp_sec: block.timestampSec,
    generation,
  }));
  const { halt } = write;
  await allOrFirstError([
    insertAll(tx, 'generations', [scan]),
    insertAll(tx, 'blocks', blocks),
    insertEvents(tx, write, middles),
    insertSnapshots(tx, write),
    halt === null ? Promise.resolve() : insertHalt(tx, { ...halt, timeMs: write.scannedMs, generation }),
  ]);
}

async function insertEvents(
  tx: Knex.Transaction,
  { generation, custody, posts }: GenerationWrite,
  middles: readonly (bigint | null)[],
): Promise<void> {
  const events = custody.map((event) => ({
    tx_hash: event.txHash,
    log_index: event.logIndex,
    kind: event.kind,
    maker: event.maker,
    token: event.token,
    amount_units: toColumn(event.amountUnits),
    basis: event.basis === null ? null : toColumn(event.basis),
    ready_at_sec: event.readyAtSec,
    settlement_no: event.settlementNo,
    paid_gas: event.paidGas === null ? null : toSafeInt(event.paidGas),
    block_number: event.blockNumber,
    generation,
  }));
  const seen = posts.map((post, i) => ({
    market: post.market,
    seq: post.seq,
    era: post.era,
    base_seq: post.baseSeq,
    posted_seq: post.postedSeq,
    deadline_sec: post.deadlineSec,
    snap_ask_units: toColumn(post.snapAskUnits),
    snap_bid_units: toColumn(post.snapBidUnits),
    words_hash: post.wordsHash,
    block_number: post.blockNumber,
    block_timestamp_sec: post.blockTimestampSec,
    tx_hash: post.txHash,
    generation,
    middle_half_subticks: middles[i] === null ? null : toColumn(middles[i]!),
  }));
  await allOrFirstError([insertAll(tx, 'custody_events', events), insertAll(tx, 'posts_seen', seen)]);
}

async function insertProgress(
  tx: Knex.Transaction,
  generation: number,
  progress: readonly MarketProgress[],
): Promise<void> {
  const rows = progress.map((one) => ({
    market: one.market,
    generation,
    fill_seq: one.fillSeq,
    ask_volume_units: toColumn(one.askVolumeUnits),
    bid_volume_units: toColumn(one.bidVolumeUnits),
  }));
  await insertAll(tx, 'market_progress', rows);
}

/** The newest generation, null before the first. */
export async function loadLedgerHead(q: Queryable): Promise<LedgerHead | null> {
  const last = await lastGeneration(q);
  return last === null ? null : { ...last, lastScanMs: Math.max(last.scannedMs, await readNotedScan(q)) };
}

/**
 * Counters of every market that ever had a fill, by index. One query per market, because a market has a row for every generation with a
 * fill.
 */
export async function readProgress(q: Queryable): Promise<MarketProgress[]> {
  const markets = await sendForRows<{ market: number }>(q, 'select market from markets order by market');
  const found = await allOrFirstError(markets.map(({ market }) => readMarketProgress(q, market)));
  return found.filter((one) => one !== null);
}

/** Counters of the markets that have a fill in a generation, as they are before it; a market without an earlier fill is missing. */
async function readProgressBefore(q: Queryable, { fills }: GenerationWrite): Promise<Map<number, MarketProgress>> {
  const markets = [...new Set(fills.map(({ fill }) => fill.market))];
  const found = await allOrFirstError(markets.map((market) => readMarketProgress(q, market)));
  return new Map(found.flatMap((progress) => (progress === null ? [] : [[progress.market, progress] as const])));
}

/** Counters of one market, null before its first fill. */
export async function readMarketProgress(q: Queryable, market: number): Promise<MarketProgress | null> {
  const newest = 'select * from market_progress where market = ? order by generation desc limit 1';
  const [row] = await sendForRows<Stored<'market_progress'>>(q, newest, [market]);
  return row === undefined ? null : toProgress(row);
}

function toProgress(row: Stored<'market_progress'>): MarketProgress {
  return {
    market: row.market,
    fillSeq: row.fill_seq,
    askVolumeUnits: fromColumn(row.ask_volume_units),
    bidVolumeUnits: fromColumn(row.bid_volume_units),
  };
}

/**
 * Effects of the generations with `after` < generation <= `upTo` that are live after `upTo`, oldest first, at most `limit` (1..10000) of
 * them, including generations without a fill. Within one, order fills are by market and fill_seq. Throws LedgerReversedError when the state
 * after `after` does not lead to the one after `upTo`.
 */
export async function readGenerationEffects(
  q: Queryable,
  range: { after: number; upTo?: number; limit: number },
): Promise<GenerationEffects[]> {
  const reversals = await readReversals(q);
  const upTo = range.upTo ?? (await lastGeneration(q))?.generation ?? 0;
  checkContinues(reversals, range.after, Math.max(upTo, range.after));
  const ranges = rangesAfter(liveRanges(reversals, upTo), range.after);
  if (ranges.length === 0) return [];
  const rows = await q<Stored<'generations'>>('generations')
    .where((any) => {
      for (const { from, to } of ranges) void any.orWhereBetween('generation', [from, to]);
    })
    .orderBy('generation')
    .limit(checkLimit(range.limit))
    .select('generation', 'to_block');
  if (rows.length === 0) return [];
  const span = { from: rows[0]!.generation, to: rows.at(-1)!.generation };
  // A state before a later reversal includes rows that the reversal has moved to the orphans.
  const hasOrphans = reversals.some(({ generation }) => generation > upTo);
  const partsOf = groupBy(await readParts(q, span, hasOrphans), (part) => part.generation);
  const progressOf = groupBy(await readProgressOf(q, span, hasOrphans), (one) => one.generation);
  return rows.map(({ generation, to_block }) => ({
    generation,
    toBlock: to_block,
    orderFills: (partsOf.get(generation) ?? []).map(toOrderFill),
    progress: (progressOf.get(generation) ?? []).map(toProgress),
  }));
}

type Span = { from: number; to: number };

async function readParts(q: Queryable, span: Span, hasOrphans: boolean): Promise<Stored<'order_fills'>[]> {
  const parts = await q('order_fills')
    .whereBetween('generation', [span.from, span.to])
    .orderBy(['generation', 'market', 'fill_seq', 'part_no'])
    .select<Stored<'order_fills'>[]>(
      'generation',
      'oid',
      'maker',
      'market',
      'side',
      'price_ticks',
      'base_units',
      'fill_seq',
      'part_no',
    );
  if (!hasOrphans) return parts;
  const orphans = await readOrphanedRows(q, 'order_fills', span);
  return [...parts, ...orphans].sort(
    (a, b) => a.generation - b.generation || a.market - b.market || a.fill_seq - b.fill_seq || a.part_no - b.part_no,
  );
}

async function readProgressOf(q: Queryable, span: Span, hasOrphans: boolean): Promise<Stored<'market_progress'>[]> {
  const rows = await q('market_progress')
    .whereBetween('generation', [span.from, span.to])
    .orderBy(['generation', 'market'])
    .select();
  return hasOrphans ? [...rows, ...(await readOrphanedRows(q, 'market_progress', span))] : rows;
}

function toOrderFill(part: Stored<'order_fills'>): OrderFill {
  return {
    oid: part.oid,
    maker: part.maker,
    market: part.market,
    side: part.side,
    priceTicks: fromColumn(part.price_ticks),
    baseUnits: fromColumn(part.base_units),
  };
}
