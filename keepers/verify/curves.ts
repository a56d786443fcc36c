import { leastGainUnits, NO_GAINS, orderFillsOf, replayCurve, type SideGains } from '../../core/attribution.js';
import { snapshotCloids } from '../../core/snapshot.js';
import { tradeId } from '../../core/hash.js';
import type { Market, MarketSnapshot, OrderFill, Side, Decomposition } from '../../core/types.js';
import { readAttributedFill } from '../../ledger/chain/fills.js';
import { readSnapshot } from '../../ledger/chain/ledger-log.js';
import { readPublication } from '../../ledger/publications/publication-log.js';
import { dueRaise, isDueVolume, namedVolume, raisedBy } from '../../ledger/publications/raises.js';
import { checkCompactedPublication, RecordFaultError, rebuildPublication } from '../../ledger/publications/rebuild.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { readSeqResets } from '../../ledger/publications/seq-resets.js';
import type { Publication, Queryable, SeqReset } from '../../ledger/types.js';
import { isSuspendedCurve } from '../../ledger/chain/suspense.js';
import { unexplainedFill } from '../watcher/derive/attributor.js';
import { countRows, firstRow, readRows } from '../../ledger/db/rows.js';
import { lastFillBefore, readSeenInCutOrder } from '../../ledger/views/audit.js';
import { VerifyError, same, type Verification } from './verification.js';
import type { Stored } from '../../ledger/db/tables.js';

const CHECK = 'curves';
/** Late fills read at a time; few curves have more. */
const LATE_PAGE = 20;
/** Fills read at a time for the counters of a market. */
const PROGRESS_PAGE = 1_000;

type SeenCurve = Stored<'posts_seen'>;

const SIDES: readonly Side[] = ['ask', 'bid'];

/** A full or partial post with its raise, and the operator's gain on its fills and those of its touches. */
interface PostedCurve {
  era: number;
  seq: number;
  raised: Record<Side, bigint>;
  isBounded: Record<Side, boolean>;
  gains: Record<Side, SideGains>;
}

/**
 * Rebuilds every curve that was seen on-chain from the order log, and derives every fill's decomposition from the curve that it hit, with
 * the carry of the fills before and what that raised. The fills of a curve that started by the carry rule may cost the operator rounding at
 * most. Fills are numbered without gaps. Where the order rows were compacted, the book that was stored when the first fill hit the curve
 * stands in for the rows: it must have the hash that was prepared, and every curve with a fill must have one. Fills of curves that were not
 * prepared here must be in suspense completely.
 */
export async function verifyCurves(
  verification: Verification,
): Promise<{ curves: number; foldedCurves: number; fills: number }> {
  const { q, markets, onProgress, compacted } = verification;
  let foldedCurves = 0;
  const snapshots = createSnapshotStore(markets, { rebuildAlways: true });
  const total = await countRows(q, 'posts_seen');
  const resets = await verifyResets(verification);
  /** What touches may still prolong: the newest curve of each market. */
  const postedOf = new Map<number, PostedCurve>();
  let fills = 0;
  let curves = 0;
  for await (const post of readSeenInCutOrder(q)) {
    curves += 1;
    const { market: index, seq } = post;
    const market = markets[index];
    if (market === undefined) throw new VerifyError(CHECK, `curve ${seq} is of market ${index}, which is not listed`);
    const span = await spanOf(q, post);
    checkEra(market, post, resets.get(index) ?? []);
    if (await isSuspendedCurve(q, index, seq, post.tx_hash)) {
      fills += await verifyUnexplained(verification, market, span);
      onProgress({ check: CHECK, done: curves, total });
      continue;
    }
    const publication = await readPublication(q, index, seq);
    if (publication === null) throw new VerifyError(CHECK, `curve ${seq} of ${market.pair} was never prepared`);
    compareSeen(market, post, publication, await seenAs(q, post, post.base_seq));
    const oldFillSeq = resets.get(index)?.[post.era - 1]?.fillSeq ?? 0;
    const newest = postedOf.get(index);
    const posted =
      newest !== undefined && newest.era === post.era && newest.seq === post.posted_seq
        ? newest
        : await postedCurve(q, market, publication, {
            posted: (await seenAs(q, post, post.posted_seq)) ?? post,
            oldFillSeq,
          });
    postedOf.set(index, posted);
    const stored = await readSnapshot(q, index, seq);
    const { cut } = publication;
    const before = fills;
    if (cut.orderSeq < compacted.orderSeq || cut.generation < compacted.cutGeneration) {
      foldedCurves += 1;
      await checked(() => checkCompactedPublication(q, market, publication, stored));
      if (stored !== null) fills += await verifyFills(verification, market, { span, posted }, stored);
    } else {
      const { snapshot } = await checked(() => rebuildPublication(q, { markets, snapshots }, publication));
      if (stored !== null) same(CHECK, `the book behind curve ${seq} of ${market.pair}`, stored, snapshot);
      same(CHECK, `the last fill before curve ${seq} of ${market.pair}`, publication.fillSeq, snapshot.fillSeq);
      fills += await verifyFills(verification, market, { span, posted }, snapshot);
    }
    if (fills > before && stored === null)
      throw new VerifyError(CHECK, `curve ${seq} of ${market.pair} has a fill, and its book was not kept`);
    onProgress({ check: CHECK, done: curves, total });
  }
  await verifyProgress(verification, fills);
  return { curves, foldedCurves, fills };
}

/** The fills of a curve that was not prepared here. Returns their number. */
async function verifyUnexplained({ q, suspended }: Verification, market: Market, span: FillSpan): Promise<number> {
  const { seq } = span;
  const rows = await fillsOf(q, span);
  for (const row of rows) {
    const { fill, decomposition, orderFills } = await readAttributedFill(q, row);
    const name = `fill ${fill.fillSeq} of ${market.pair}`;
    if (!suspended.has(`${market.index}:${fill.fillSeq}`))
      throw new VerifyError(CHECK, `${name} hit curve ${seq}, which was not prepared here, and is not in suspense`);
    same(CHECK, `the decomposition of ${name}`, [decomposition, orderFills], [unexplainedFill(fill), []]);
  }
  return rows.length;
}

/** The fills of one curve. Its number alone names it unless another one had the same, before the owner gave numbers back. */
interface FillSpan {
  market: number;
  seq: number;
  fromBlock: number;
  /** The block of the next curve with this number; null without any. */
  beforeBlock: number | null;
}

async function spanOf(q: Queryable, post: SeenCurve): Promise<FillSpan> {
  const { market, seq, era, block_number: fromBlock } = post;
  const next = await readRows(q, 'posts_seen', { where: { market, seq }, above: ['era', era] });
  const beforeBlock = next.length === 0 ? null : Math.min(...next.map((one) => one.block_number));
  return { market, seq, fromBlock, beforeBlock };
}

async function fillsOf(q: Queryable, { market, seq, fromBlock, beforeBlock }: FillSpan): Promise<Stored<'fills'>[]> {
  const rows = await readRows(q, 'fills', {
    where: { market, curve_seq: seq },
    above: ['block_number', fromBlock - 1],
    orderBy: ['fill_seq'],
  });
  return beforeBlock === null ? rows : rows.filter((row) => row.block_number < beforeBlock);
}

/** The curve of a number among those that a post is counted with. */
async function seenAs(q: Queryable, post: SeenCurve, seq: number): Promise<SeenCurve | undefined> {
  const { market, era } = post;
  return seq === post.seq ? post : firstRow(q, 'posts_seen', { where: { market, era, seq } });
}

/** By market: they are counted without gaps, and each names the last fill before it. */
async function verifyResets({ q, markets }: Verification): Promise<ReadonlyMap<number, SeqReset[]>> {
  const resets = new Map<number, SeqReset[]>();
  for (const { index, pair } of markets) {
    const rows = await readSeqResets(q, index);
    for (const [i, one] of rows.entries()) {
      same(CHECK, `the era of reset ${i + 1} of ${pair}`, one.era, i + 1);
      const before = await lastFillBefore(q, index, one);
      same(CHECK, `the last fill before reset ${i + 1} of ${pair}`, one.fillSeq, before);
    }
    resets.set(index, rows);
  }
  return resets;
}

/** A curve is of the era that its block is in; in the block of a reset it may be of either. */
function checkEra({ pair }: Market, { seq, era, block_number: block }: SeenCurve, resets: readonly SeqReset[]): void {
  const least = resets.filter(({ blockNumber }) => blockNumber < block).length;
  const most = resets.filter(({ blockNumber }) => blockNumber <= block).length;
  if (era < least || era > most)
    throw new VerifyError(CHECK, `curve ${seq} of ${pair} is of era ${era}, and its block of ${least} to ${most}`);
}

/**
 * Checks that the curve seen on-chain equals the prepared one. A touch has only the number of the curve that it prolongs and the new
 * deadline. `base` is what was seen of that.
 */
function compareSeen(market: Market, seen: SeenCurve, publication: Publication, base: SeenCurve | undefined): void {
  const isTouch = seen.base_seq !== seen.seq;
  const { baseSeq, seq, deadlineSec, wordsHash } = publication;
  const posted = isTouch ? [baseSeq, base?.posted_seq, '0x'] : [seq, seq, wordsHash];
  same(
    CHECK,
    `curve ${seq} of ${market.pair}, as it was seen`,
    [seen.deadline_sec, seen.base_seq, seen.posted_seq, seen.words_hash],
    [deadlineSec, ...posted],
  );
  if (!isTouch) return;
  const volumes = [seen.snap_ask_units, seen.snap_bid_units];
  same(CHECK, `the volumes of touch ${seq} of ${market.pair}`, volumes, [0n, 0n]);
}

/** Checks that the volumes stored on-chain are the prepared ones, or those by the carry rule. */
async function postedCurve(
  q: Queryable,
  market: Market,
  publication: Publication,
  { posted, oldFillSeq }: { posted: SeenCurve; oldFillSeq: number },
): Promise<PostedCurve> {
  const stored = { snapAskUnits: BigInt(posted.snap_ask_units), snapBidUnits: BigInt(posted.snap_bid_units) };
  const raised = raisedBy(publication, stored);
  const carry = await carriedUnits(q, publication, { seq: posted.seq, oldFillSeq });
  const isBounded = { ask: true, bid: true };
  for (const side of SIDES) {
    const takenUnits = namedVolume(publication, side) + carry[side];
    if (!isDueVolume(market, publication, stored, { side, takenUnits })) {
      throw new VerifyError(
        CHECK,
        `curve ${posted.seq} of ${market.pair} raised its ${side} side by ${raised[side]} base units, not by ` +
          `${dueRaise(market, publication, side, carry[side])}`,
      );
    }
    isBounded[side] = raised[side] === dueRaise(market, publication, side, carry[side]);
  }
  return { era: posted.era, seq: posted.seq, raised, isBounded, gains: { ask: NO_GAINS, bid: NO_GAINS } };
}

/** Base units taken of each side between a post's cut and its landing: by fills on curves before it. */
async function carriedUnits(
  q: Queryable,
  { market, fillSeq }: Pick<Publication, 'market' | 'fillSeq'>,
  { seq, oldFillSeq }: { seq: number; oldFillSeq: number },
): Promise<Record<Side, bigint>> {
  const carry = { ask: 0n, bid: 0n };
  for (let after = fillSeq; ;) {
    const rows = await readRows(q, 'fills', {
      where: { market },
      above: ['fill_seq', after],
      orderBy: ['fill_seq'],
      limit: LATE_PAGE,
    });
    for (const row of rows) {
      // Of a curve from before numbers were given back, whatever its number.
      if (row.fill_seq > oldFillSeq && row.curve_seq >= seq) return carry;
      carry[row.side] += BigInt(row.base_units);
      after = row.fill_seq;
    }
    if (rows.length < LATE_PAGE) return carry;
  }
}

async function checked<T>(check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof RecordFaultError) throw new VerifyError(CHECK, error.message);
    throw error;
  }
}

/** Derives the decompositions of one curve's fills and compares them with what is stored. Returns their number. */
async function verifyFills(
  { q, deploymentId, suspended }: Verification,
  market: Market,
  { span, posted }: { span: FillSpan; posted: PostedCurve },
  snapshot: MarketSnapshot,
): Promise<number> {
  const { seq: curveSeq } = span;
  const rows = await fillsOf(q, span);
  const [first] = rows;
  if (first === undefined) return 0;
  const stored = [];
  for (const row of rows) stored.push(await readAttributedFill(q, row));
  const late = await lateFills({ q }, market, snapshot.fillSeq, first);
  const replay = replayCurve(
    market,
    snapshot,
    late,
    stored.map(({ fill }) => fill),
    // The consumption that a touch finds has the fills of the curve before it, which are late fills to it.
    posted.raised,
  );
  const cloids = snapshotCloids(snapshot);
  stored.forEach(({ fill, decomposition, orderFills }, i) => {
    const name = `fill ${fill.fillSeq} of ${market.pair}`;
    const isSuspended = suspended.has(`${market.index}:${fill.fillSeq}`);
    const isMisplaced = replay.mismatchUnits[i] !== 0n;
    const derived = isMisplaced && isSuspended ? unexplainedFill(fill) : replay.decompositions[i]!;
    if (isMisplaced && !isSuspended) {
      throw new VerifyError(CHECK, `${name} entered curve ${curveSeq} ${replay.mismatchUnits[i]} base units off`);
    }
    same(CHECK, `the decomposition of ${name}`, decomposition, derived);
    addGains(market, posted, fill.side, replay.decompositions[i]!, isSuspended);
    const parts = orderFillsOf(market, fill.side, derived).map((part) => ({
      ...part,
      tid: tradeId(deploymentId, market.id, fill, part.oid),
      cloid: cloids.get(part.oid) ?? null,
    }));
    same(CHECK, `the order fills of ${name}`, orderFills, parts);
  });
  for (const [i, row] of rows.entries()) await compareParts(q, market, row, stored[i]!.orderFills);
  return rows.length;
}

/** Adds what a fill brought to what its curve has, which must stay above what rounding explains. */
function addGains(
  market: Market,
  { seq, isBounded, gains }: PostedCurve,
  side: Side,
  fill: Decomposition,
  isSuspended: boolean,
): void {
  const { gainUnits, legs } = gains[side];
  gains[side] = { gainUnits: gainUnits + fill.operatorGainUnits, legs: legs + fill.legs.length };
  const least = leastGainUnits(side, gains[side].legs);
  if (isSuspended || !isBounded[side] || gains[side].gainUnits >= least) return;
  throw new VerifyError(
    CHECK,
    `the ${side} side of curve ${seq} of ${market.pair} brought the operator ${gains[side].gainUnits} quote units, less than ${least}`,
  );
}

/** The rows of `order_fills` repeat what the legs say, and it is from them that makers are told, and that later curves are carried. */
async function compareParts(
  q: Queryable,
  market: Market,
  fill: Stored<'fills'>,
  parts: readonly OrderFill[],
): Promise<void> {
  const where = { market: market.index, fill_seq: fill.fill_seq };
  const rows = await readRows(q, 'order_fills', { where, orderBy: ['part_no'] });
  same(
    CHECK,
    `the rows of the order fills of fill ${fill.fill_seq} of ${market.pair}`,
    rows.map((row) => [row.part_no, row.oid, row.maker, row.side, row.price_ticks, row.base_units, row.generation]),
    parts.map((part, i) => [...[i, part.oid, part.maker, part.side, part.priceTicks, part.baseUnits], fill.generation]),
  );
}

/** Parts of the fills between a snapshot's cut and the curve's first fill; they were taken on older curves. */
async function lateFills(
  { q }: Pick<Verification, 'q'>,
  market: Market,
  afterFillSeq: number,
  first: Stored<'fills'>,
): Promise<OrderFill[]> {
  const rows = await readRows(q, 'fills', {
    where: { market: market.index },
    between: ['fill_seq', afterFillSeq + 1, first.fill_seq - 1],
    orderBy: ['fill_seq'],
  });
  const late: OrderFill[] = [];
  for (const row of rows) late.push(...(await readAttributedFill(q, row)).orderFills);
  return late.map(({ oid, maker, market: index, side, priceTicks, baseUnits }) => ({
    oid,
    maker,
    market: index,
    side,
    priceTicks,
    baseUnits,
  }));
}

/** The counters of each market add up from its fills, and every fill hit a curve that was seen. */
async function verifyProgress({ q, markets }: Verification, ofCurves: number): Promise<void> {
  let total = 0;
  for (const market of markets) total += await verifyCounters(q, market);
  if (total !== ofCurves) {
    throw new VerifyError(CHECK, `${total} fills are stored, ${ofCurves} of them on curves that were seen on-chain`);
  }
}

/** Compares the counters of a market after each generation that has fills, a page of fills at a time. Returns how many fills it has. */
async function verifyCounters(q: Queryable, market: Market): Promise<number> {
  const where = { market: market.index };
  const sums = { ask: 0n, bid: 0n };
  let fillSeq = 0;
  let compared = -1;
  /** Counters after the generations of a page, of which the last one may go on in the next page. */
  const derived = new Map<number, string[]>();
  for (;;) {
    const rows = await readRows(q, 'fills', {
      where,
      above: ['fill_seq', fillSeq],
      orderBy: ['fill_seq'],
      limit: PROGRESS_PAGE,
    });
    for (const row of rows) {
      same(CHECK, `the fill of ${market.pair} after ${fillSeq}`, row.fill_seq, fillSeq + 1);
      fillSeq = row.fill_seq;
      sums[row.side] += BigInt(row.base_units);
      derived.set(row.generation, [`${fillSeq}`, `${sums.ask}`, `${sums.bid}`]);
    }
    const isLast = rows.length < PROGRESS_PAGE;
    const done = isLast ? [...derived] : [...derived].slice(0, -1);
    const stored = await readRows(q, 'market_progress', {
      where,
      above: ['generation', compared],
      orderBy: ['generation'],
      limit: done.length + (isLast ? 1 : 0),
    });
    same(
      CHECK,
      `the counters of ${market.pair}`,
      stored.map((row) => [row.generation, `${row.fill_seq}`, row.ask_volume_units, row.bid_volume_units]),
      done.map(([generation, counters]) => [generation, ...counters]),
    );
    if (isLast) return fillSeq;
    compared = done.at(-1)?.[0] ?? compared;
    for (const [generation] of done) derived.delete(generation);
  }
}
