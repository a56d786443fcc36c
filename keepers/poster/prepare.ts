import { toSafeInt } from '../../core/amounts.js';
import { buildCurve, chooseCurveKnots, type BuiltCurve } from '../../core/curve/build.js';
import { COMPRESSION, type KnotPolicy } from '../../core/curve/compress.js';
import { MAX_SEQ_STEP, type BlockRef, type FullPost, type PostRecord } from '../../core/curve/post.js';
import { cutDeadlineSec } from '../../core/cut.js';
import { trimToInventory } from '../../core/exposure.js';
import { candidateOf, snapshotHash, uncrossSnapshot } from '../../core/snapshot.js';
import type { Address, Market, MarketSnapshot, Side, Trim } from '../../core/types.js';
import type { Follower } from '../../ledger/orders/follower.js';
import type { Publication } from '../../ledger/types.js';
import { cheaperPost } from './gas.js';
import { planStep, type Step } from './plan.js';
import { mayWait, type SmallChanges } from './small.js';
import type { MarketView, PosterView } from './view.js';

/** A publication that is due, and the record that carries it. */
export interface Due {
  market: Market;
  publication: Omit<Publication, 'txKey'>;
  snapshot: MarketSnapshot;
  record: PostRecord;
  /** Depth of the book that the curve does not offer. */
  leftOut: LeftOut[];
}

/** Depth that a curve does not offer, in lots. It stays in the book and is offered once what is in front of it is gone. */
export interface LeftOut {
  side: Side;
  /** `error`: the curve could not follow it closely enough. `reach`: too far away or too deep for packed words, or lost to rounding. */
  reason: 'error' | 'reach';
  lots: bigint;
}

interface PrepareOptions {
  curveTtlSec: number;
  /** Longest time to the deadline that the owner has set, by index of the market; where missing, that of the listing. */
  maxTtlSec: ReadonlyMap<number, number>;
  /** Highest sequence number of a market that the chain or the archive knows of, whatever the database does; 0 for none. */
  usedSeq(market: number): number;
  touchBeforeSec: number;
  small: SmallChanges;
  knots: KnotPolicy;
  preparedMs: number;
}

/** What is due at a cut, and why other markets are skipped. */
export interface Prepared {
  due: Due[];
  skipped: { market: Market; reason: string }[];
  /** How many orders of each market were left out because they cross larger ones. */
  crossing: { market: Market; orders: number }[];
}

/** Why nothing is posted for a market that trades a token of which the operator's row has too little. */
export const BELOW_FLOOR = 'operator_below_floor';
/** Why nothing is offered in a market: one of its tokens is in quarantine. */
export const TOKEN_QUARANTINED = 'token_quarantined';
/** All sequence numbers that the contract accepts next were used before the owner gave numbers back. */
export const NO_FREE_NUMBER = 'no_free_number';

/**
 * Everything to publish at a cut: each market's book less the makers left out, trimmed to what they can pay over all markets, less what
 * crosses, compared with its newest publication, compressed and checked. Pure except for the follower, which must be at the view's cut.
 * Throws CurveCheckError rather than return a curve that fails its check.
 */
export function prepareDue(view: PosterView, follower: Follower, options: PrepareOptions): Prepared {
  const trades = ({ base, quote }: Market, tokens: ReadonlySet<Address>): boolean =>
    tokens.has(base.address) || tokens.has(quote.address);
  const stopIn = (market: Market): string | null => {
    if (trades(market, view.quarantined)) return TOKEN_QUARANTINED;
    return trades(market, view.shortTokens) ? BELOW_FLOOR : null;
  };
  // When a token is in quarantine, or the operator's row has too little of it, all makers are left out: an empty curve replaces the live
  // one, so that no quote stays live that its maker can't cancel.
  const excludedIn = (market: Market): ReadonlySet<Address> =>
    stopIn(market) === null ? view.excluded : new Set(follower.book.makersIn(market.index));
  // Nothing is published for a delisted market: its curve expires, and counts as long as it may be executed.
  const candidates = view.markets.map(({ market }) =>
    view.operator.delisted.has(market.index)
      ? null
      : candidateOf(follower.book, market, follower.progress(market.index), excludedIn(market)),
  );
  const limited = trimToInventory(
    view.markets.map(({ market, older }, i) => ({ market, older, candidate: candidates[i] ?? null })),
    view.availableUnits,
  );
  const trimmed = new Set(
    limited.flatMap(({ trims }) => trims.flatMap(({ oid }) => follower.book.order(oid)?.maker ?? [])),
  );
  const prepared: Prepared = { due: [], skipped: [], crossing: [] };
  for (const [i, marketView] of view.markets.entries()) {
    const { market } = marketView;
    const { snapshot: limitedTo, trims } = limited[i] ?? { snapshot: null, trims: [] };
    if (limitedTo === null) continue;
    const { snapshot, crossing } = uncrossSnapshot(limitedTo);
    prepared.crossing.push({ market, orders: crossing.asks + crossing.bids });
    const excluded = excludedHere(follower, market, excludedIn(market));
    const stop = stopIn(market);
    const waiting = stop === null ? { trimmed } : null;
    const one = prepareMarket({ view, marketView, snapshot, trims, excluded, waiting }, options);
    if (stop !== null) prepared.skipped.push({ market, reason: stop });
    if (typeof one !== 'string') prepared.due.push(one);
    else if (stop === null) prepared.skipped.push({ market, reason: one });
  }
  return prepared;
}

/** Makers left out that have orders in the market, by address. */
function excludedHere(follower: Follower, market: Market, excluded: ReadonlySet<Address>): Address[] {
  if (excluded.size === 0) return [];
  const orders = [...follower.book.sideOrders(market.index, 'ask'), ...follower.book.sideOrders(market.index, 'bid')];
  return [...new Set(orders.map(({ maker }) => maker))].filter((maker) => excluded.has(maker)).sort();
}

interface Candidate {
  view: PosterView;
  marketView: MarketView;
  snapshot: MarketSnapshot;
  trims: Trim[];
  excluded: Address[];
  /** Small changes may wait, but for orders that these makers took away; null: nothing waits. */
  waiting: { trimmed: ReadonlySet<Address> } | null;
}

function prepareMarket(candidate: Candidate, options: PrepareOptions): Due | string {
  const { view, marketView, snapshot } = candidate;
  const { market, last } = marketView;
  const headSec = Math.floor(view.head.blockTimestampMs / 1_000);
  const ttlSec = Math.min(options.curveTtlSec, options.maxTtlSec.get(market.index) ?? market.maxTtlSec);
  const deadlineOf = (offered: MarketSnapshot): number => cutDeadlineSec(offered, headSec, ttlSec, view.armed);
  const deadlineSec = deadlineOf(snapshot);
  const waits =
    candidate.waiting !== null && mayWait(view, marketView, snapshot, options.small, candidate.waiting.trimmed);
  const kept = last !== null && last.snapshot !== null && waits ? { ...last, snapshot: last.snapshot } : null;
  const step = planStep(last, snapshot, {
    head: { timestampSec: headSec, blockNumber: view.head.toBlock },
    deadlineSec,
    touchBeforeSec: options.touchBeforeSec,
    waiting: kept === null ? null : { deadlineSec: deadlineOf(kept.snapshot) },
  });
  if (step.kind === 'none') return step.reason;
  if (step.kind === 'post' || kept === null) return dueOf(candidate, step, deadlineSec, options);
  // A touch prolongs the earlier book, not the changed one.
  const { cut, trims, excluded } = kept.publication;
  const before = { ...candidate, view: { ...view, cut }, snapshot: kept.snapshot, trims, excluded };
  return dueOf(before, step, deadlineOf(kept.snapshot), options);
}

/**
 * The next sequence number: after the highest that was ever seen, or after the one that the owner set. Numbers used by a foreign curve or
 * by a lost database are never used again. A reported number beyond the contract's step is ignored, so that a wrong answer of an endpoint
 * can't use up numbers. Null when no number within the step is free.
 */
function nextSeq(
  { market, last, landedSeq, taken }: MarketView,
  { usedSeq }: Pick<PrepareOptions, 'usedSeq'>,
): number | null {
  const knownSeq = Math.max(last?.seq ?? 0, landedSeq);
  const used = usedSeq(market.index);
  let next = (used - knownSeq < MAX_SEQ_STEP ? Math.max(knownSeq, used) : knownSeq) + 1;
  while (taken.has(next)) next += 1;
  return taken.size > 0 && next - landedSeq > MAX_SEQ_STEP ? null : next;
}

interface Curve {
  record: PostRecord;
  words: Pick<
    Publication,
    | 'askWords'
    | 'bidWords'
    | 'wordsHash'
    | 'askKnots'
    | 'bidKnots'
    | 'compression'
    | 'maxErrorMilliBps'
    | 'exactAskKnots'
    | 'exactBidKnots'
    | 'askErrorPpb'
    | 'bidErrorPpb'
  >;
  leftOut: LeftOut[];
}

function dueOf(
  candidate: Candidate,
  step: Exclude<Step, { kind: 'none' }>,
  deadlineSec: number,
  options: PrepareOptions,
): Due | string {
  const { view, marketView, snapshot, trims, excluded } = candidate;
  const { market, last } = marketView;
  const seq = nextSeq(marketView, options);
  if (seq === null) return NO_FREE_NUMBER;
  const head = { marketId: market.id, seq, deadlineSec };
  const block: BlockRef = { number: view.head.toBlock, hash: view.head.blockHash };
  const { record, words, leftOut } =
    step.kind === 'touch' && last !== null
      ? touchOf(head, last.publication)
      : postOf(market, snapshot, head, { options, block, before: step.kind === 'post' && step.amend ? last : null });
  return {
    market,
    snapshot,
    record,
    leftOut,
    publication: {
      market: market.index,
      seq,
      baseSeq: record.kind === 'full' ? seq : record.baseSeq,
      kind: record.kind,
      cut: view.cut,
      blockNumber: block.number,
      blockHash: block.hash,
      fillSeq: snapshot.fillSeq,
      askVolumeUnits: snapshot.askVolumeUnits,
      bidVolumeUnits: snapshot.bidVolumeUnits,
      trims,
      excluded,
      snapshotHash: snapshotHash(snapshot),
      ...words,
      deadlineSec,
      preparedMs: options.preparedMs,
    },
  };
}

type RecordHead = Pick<FullPost, 'marketId' | 'seq' | 'deadlineSec'>;

/** A touch keeps the words of the live curve, however new ones would be compressed now. */
function touchOf(head: RecordHead, live: Publication): Curve {
  const { askWords, bidWords, wordsHash, askKnots, bidKnots, maxErrorMilliBps, compression } = live;
  const { exactAskKnots, exactBidKnots, askErrorPpb, bidErrorPpb } = live;
  const made = {
    ...{ askKnots, bidKnots, maxErrorMilliBps, compression },
    ...{ exactAskKnots, exactBidKnots, askErrorPpb, bidErrorPpb },
  };
  return {
    record: { kind: 'touch', ...head, baseSeq: live.seq },
    words: { askWords, bidWords, wordsHash, ...made },
    leftOut: [],
  };
}

function postOf(
  market: Market,
  snapshot: MarketSnapshot,
  head: RecordHead,
  { options, block, before }: { options: PrepareOptions; block: BlockRef; before: MarketView['last'] },
): Curve {
  const knots = chooseCurveKnots(snapshot, options.knots);
  const { askWords, bidWords, wordsHash, exactAskKnots, exactBidKnots, ...curve } = buildCurve(market, snapshot, knots);
  const full: FullPost = {
    kind: 'full',
    ...head,
    snapAskUnits: snapshot.askVolumeUnits,
    snapBidUnits: snapshot.bidVolumeUnits,
    exactAskKnots,
    exactBidKnots,
    askWords,
    bidWords,
  };
  return {
    record: before === null ? full : cheaperPost(block, full, before.publication),
    words: {
      ...{ askWords, bidWords, wordsHash, ...knots, compression: COMPRESSION, exactAskKnots, exactBidKnots },
      askErrorPpb: toSafeInt(curve.askErrorPpb),
      bidErrorPpb: toSafeInt(curve.bidErrorPpb),
    },
    leftOut: leftOutOf(curve),
  };
}

type LeftOutLots = Pick<BuiltCurve, 'askLeftOutLots' | 'askUnfollowedLots' | 'bidLeftOutLots' | 'bidUnfollowedLots'>;

function leftOutOf(curve: LeftOutLots): LeftOut[] {
  const of = (side: Side, allLots: bigint, unfollowedLots: bigint): LeftOut[] => [
    { side, reason: 'error', lots: unfollowedLots },
    { side, reason: 'reach', lots: allLots - unfollowedLots },
  ];
  return [
    ...of('ask', curve.askLeftOutLots, curve.askUnfollowedLots),
    ...of('bid', curve.bidLeftOutLots, curve.bidUnfollowedLots),
  ];
}
