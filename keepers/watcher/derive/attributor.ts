import {
  attributeFill,
  consumptionMismatchUnits,
  leastGainUnits,
  NO_GAINS,
  NOTHING_RAISED,
  openSide,
  orderFillsOf,
  type SideGains,
  type SideState,
} from '../../../core/attribution.js';
import { tradeId } from '../../../core/hash.js';
import { snapshotCloids } from '../../../core/snapshot.js';
import type { ChainFill, Decomposition, Market, MarketSnapshot, Side } from '../../../core/types.js';
import { readMarketProgress } from '../../../ledger/chain/ledger-log.js';
import { allOrFirstError, onOneConnection } from '../../../ledger/db/dialects.js';
import { readFillsAfter, type PastFill } from '../../../ledger/chain/past-fills.js';
import { isPrepared, readPostSeen, readPublication } from '../../../ledger/publications/publication-log.js';
import { dueRaise, isDueVolume, raisedBy } from '../../../ledger/publications/raises.js';
import { LogCompactedError } from '../../../ledger/errors.js';
import { SnapshotMismatchError, type SnapshotStore } from '../../../ledger/orders/snapshots.js';
import { lastSeqReset } from '../../../ledger/publications/seq-resets.js';
import type { AttributedFill, PostSeen, Publication, Queryable, SeqReset } from '../../../ledger/types.js';

/** A curve or a touch as the chain tells of it: which post a touch goes back to is known to the ledger. */
export type DraftedPost = Omit<PostSeen, 'postedSeq' | 'era'>;

/** Numbers that were given back, as the chain tells of it. */
export type DraftedReset = Omit<SeqReset, 'era' | 'fillSeq'>;

/**
 * Why a curve or a fill can't be explained. It is booked all the same, with the unexplained amounts on the suspense account, and the ledger
 * halts.
 */
interface AttributionFault {
  code: 'unexplained_curve' | 'unexplained_raise' | 'carry_mismatch' | 'missing_depth' | 'operator_loss';
  message: string;
}

/** Attribution of the posts and fills of one scan, in chain order. Nothing of it is remembered unless `commit` is called. */
export interface AttributionRun {
  /** Adds a post, and compares it with the prepared publication. */
  land(market: Market, post: DraftedPost): Promise<PostSeen>;
  attribute(market: Market, fill: ChainFill): Promise<AttributedFill>;
  /** Adds a reset of sequence numbers: the live curve ended, and later ones may have lower numbers than earlier ones. */
  reset(reset: DraftedReset): Promise<void>;
  /** Those of this scan. */
  resets(): SeqReset[];
  /** Snapshots of curves that were hit for the first time. */
  snapshots(): { seq: number; snapshot: MarketSnapshot }[];
  faults(): AttributionFault[];
  /** Posts among those that landed which this database did not prepare as they are. */
  unexplained(): { post: PostSeen; fault: AttributionFault }[];
  commit(): void;
}

export interface Attributor {
  begin(q: Queryable): AttributionRun;
}

/** One side of a curve that was hit. */
interface HitSide {
  state: SideState;
  gains: SideGains;
  /** The side started by the carry rule, so its fills can't cost the operator more than rounding. */
  isBounded: boolean;
}

/** The newest curve of a market that was hit; an older one is never hit again. */
interface HitCurve {
  seq: number;
  sides: Partial<Record<Side, HitSide>>;
  /** Client order ids of the curve's snapshot, by order. */
  cloids: ReadonlyMap<number, string>;
}

/** What an attribution begins with. */
interface OpenCurve {
  side: HitSide;
  cloids: HitCurve['cloids'];
}

const SIDES: readonly Side[] = ['ask', 'bid'];

/**
 * Replays fills against the exact books behind their curves. What is left of the curves that were hit is kept between scans; after a
 * restart it is rebuilt from the stored fills.
 */
export function createAttributor(deploymentId: string, snapshots: SnapshotStore): Attributor {
  const kept = new Map<number, HitCurve>();

  return {
    begin(q) {
      const draft = new Map<number, HitCurve>();
      const firstHits: { seq: number; snapshot: MarketSnapshot }[] = [];
      const faults: AttributionFault[] = [];
      const current: PastFill[] = [];
      const landed = new Map<string, PostSeen>();
      const unexplained: { post: PostSeen; fault: AttributionFault }[] = [];

      const resets: SeqReset[] = [];

      const lastReset = async (of: Queryable, market: number): Promise<SeqReset | null> =>
        resets.findLast((one) => one.market === market) ?? (await lastSeqReset(of, market));

      const seenPost = async (of: Queryable, market: number, seq: number): Promise<PostSeen | null> =>
        landed.get(`${market}:${seq}`) ?? (await readPostSeen(of, market, seq));

      /** Base units taken of a side so far, by all fills. */
      async function takenUnits(market: number, side: Side): Promise<bigint> {
        const before = await readMarketProgress(q, market);
        const stored = (side === 'ask' ? before?.askVolumeUnits : before?.bidVolumeUnits) ?? 0n;
        return current.reduce(
          (sum, fill) => (fill.market === market && fill.side === side ? sum + fill.baseUnits : sum),
          stored,
        );
      }

      /** A curve on our contract that this database did not prepare was posted with another database or another key. */
      async function judge(market: Market, post: PostSeen, publication: Publication | null): Promise<void> {
        const isTouch = post.baseSeq !== post.seq;
        if (publication === null || !isPrepared(publication, post)) {
          const fault: AttributionFault = {
            code: 'unexplained_curve',
            message: `curve ${post.seq} of market ${post.market} was not prepared here`,
          };
          faults.push(fault);
          unexplained.push({ post, fault });
        } else if (!isTouch) {
          for (const side of SIDES) {
            const raisedUnits = raisedBy(publication, post)[side];
            if (raisedUnits === 0n) continue;
            const at = { side, takenUnits: await takenUnits(market.index, side) };
            if (isDueVolume(market, publication, post, at)) continue;
            faults.push({
              code: 'unexplained_raise',
              message:
                `curve ${post.seq} of ${market.pair} landed with its ${side} side consumed by ${raisedUnits} base units beyond ` +
                `what was taken, which the carry rule does not give`,
            });
          }
        }
      }

      async function land(market: Market, post: DraftedPost): Promise<PostSeen> {
        const isTouch = post.baseSeq !== post.seq;
        const base = isTouch ? await seenPost(q, post.market, post.baseSeq) : null;
        const era = (await lastReset(q, post.market))?.era ?? 0;
        const seen = { ...post, era, postedSeq: base?.postedSeq ?? post.seq };
        landed.set(`${post.market}:${post.seq}`, seen);
        await judge(market, seen, await readPublication(q, post.market, post.seq));
        return seen;
      }

      /** The book behind a curve; null when what it was cut from is no longer kept, or is not what was prepared. */
      async function bookOf(of: Queryable, publication: Publication): Promise<MarketSnapshot | null> {
        try {
          return await snapshots.get(of, publication);
        } catch (error) {
          if (error instanceof LogCompactedError || error instanceof SnapshotMismatchError) return null;
          throw error;
        }
      }

      /** The curve's side as it stood before `fill`: its snapshot less the carry and the raise, less what it sold already. */
      async function open(market: Market, fill: ChainFill): Promise<OpenCurve | null> {
        const [publication, seen, reset] = await onOneConnection(q, (one) =>
          allOrFirstError([
            readPublication(one, market.index, fill.curveSeq),
            seenPost(one, market.index, fill.curveSeq),
            lastReset(one, market.index),
          ]),
        );
        if (publication === null) return null;
        // A touch continues the curve that it prolongs, including the raise at that curve's landing.
        const postedSeq = seen?.postedSeq ?? fill.curveSeq;
        const isTouch = postedSeq !== fill.curveSeq;
        // Another database's curve may have the number of one that was prepared here.
        const [posted, base] = isTouch
          ? await onOneConnection(q, (one) =>
              allOrFirstError([seenPost(one, market.index, postedSeq), readPublication(one, market.index, postedSeq)]),
            )
          : [seen, publication];
        if (seen !== null && !isPrepared(publication, seen)) return null;
        if (posted !== null && (base === null || !isPrepared(base, posted))) return null;
        const snapshot = await bookOf(q, publication);
        if (snapshot === null) return null;
        const stored = await readFillsAfter(q, market.index, snapshot.fillSeq);
        // A scan that reads old blocks again contains fills from before the book's cut.
        const since = (one: PastFill): boolean => one.market === market.index && one.fillSeq > snapshot.fillSeq;
        const past = [...stored, ...current.filter(since)];
        if (!past.some((one) => one.curveSeq === fill.curveSeq)) firstHits.push({ seq: fill.curveSeq, snapshot });
        // A curve with a higher number may be older, where numbers were given back since.
        const oldFillSeq = reset?.fillSeq ?? 0;
        const isLate = (one: PastFill): boolean => one.fillSeq <= oldFillSeq || one.curveSeq < postedSeq;
        const late = past.filter(isLate).flatMap((one) => one.orderFills);
        const raisedUnits = (posted === null ? NOTHING_RAISED : raisedBy(publication, posted))[fill.side];
        const opened = openSide(market, snapshot, fill.side, late, raisedUnits);
        const carryUnits = opened.consumedUnits - raisedUnits;
        const start: HitSide = {
          state: opened,
          gains: NO_GAINS,
          isBounded: raisedUnits === dueRaise(market, publication, fill.side, carryUnits),
        };
        const own = past.filter((one) => !isLate(one) && one.side === fill.side);
        const side = own.reduce((before, one) => sold(before, attributeFill(market, before.state, one)), start);
        return { side, cloids: snapshotCloids(snapshot) };
      }

      /** The decomposition of a fill, and the faults why a part or all of it is not explained. */
      function explain(
        market: Market,
        fill: ChainFill,
        { side, cloids }: OpenCurve,
      ): { decomposition: Decomposition; suspended: AttributionFault | null } {
        const found = faults.length;
        const mismatch = consumptionMismatchUnits(side.state, fill.consumedBeforeUnits);
        if (mismatch !== 0n) {
          faults.push({
            code: 'carry_mismatch',
            message:
              `fill ${fill.fillSeq} of ${market.pair} entered curve ${fill.curveSeq} after ${fill.consumedBeforeUnits} base ` +
              `units, ${mismatch} more than the ledger knows of`,
          });
        }
        const attributed = attributeFill(market, side.state, fill);
        if (attributed.decomposition.missingBaseUnits !== 0n) {
          faults.push({
            code: 'missing_depth',
            message:
              `no order explains ${attributed.decomposition.missingBaseUnits} base units of fill ${fill.fillSeq} ` +
              `of ${market.pair}`,
          });
        }
        const suspended = faults[found] ?? null;
        const after = sold(side, attributed);
        const { gainUnits, legs } = after.gains;
        // A loss is only a fault of its own if there is no other fault.
        if (faults.length === found && side.isBounded && gainUnits < leastGainUnits(fill.side, legs)) {
          faults.push({
            code: 'operator_loss',
            message:
              `the ${legs} legs up to fill ${fill.fillSeq} of ${market.pair} on the ${fill.side} side of curve ${fill.curveSeq} ` +
              `cost the operator ${-gainUnits} quote units, more than rounding can`,
          });
        }
        const before = draft.get(market.index) ?? kept.get(market.index);
        const sides = before?.seq === fill.curveSeq ? before.sides : {};
        draft.set(market.index, { seq: fill.curveSeq, sides: { ...sides, [fill.side]: after }, cloids });
        // With a consumption mismatch it is unknown where the fill entered its curve, and so whose orders it took.
        const decomposition = mismatch === 0n ? attributed.decomposition : unexplainedFill(fill);
        return { decomposition, suspended };
      }

      function unknown(market: Market, fill: ChainFill): { decomposition: Decomposition; suspended: AttributionFault } {
        const suspended: AttributionFault = {
          code: 'unexplained_curve',
          message: `fill ${fill.fillSeq} of ${market.pair} hit curve ${fill.curveSeq}, of which no book is stored here`,
        };
        faults.push(suspended);
        return { decomposition: unexplainedFill(fill), suspended };
      }

      async function attribute(market: Market, fill: ChainFill): Promise<AttributedFill> {
        const hit = draft.get(market.index) ?? kept.get(market.index);
        const known = hit?.seq === fill.curveSeq ? hit.sides[fill.side] : undefined;
        const curve = known === undefined ? await open(market, fill) : { side: known, cloids: hit!.cloids };
        const { decomposition, suspended } = curve === null ? unknown(market, fill) : explain(market, fill, curve);
        const orderFills = orderFillsOf(market, fill.side, decomposition);
        current.push({ ...fill, orderFills });
        return {
          fill,
          decomposition,
          ...(suspended === null ? {} : { suspended }),
          orderFills: orderFills.map((one) => ({
            ...one,
            tid: tradeId(deploymentId, market.id, fill, one.oid),
            cloid: curve?.cloids.get(one.oid) ?? null,
          })),
        };
      }

      async function reset(drafted: DraftedReset): Promise<void> {
        const { market } = drafted;
        const before = await lastReset(q, market);
        const newest = current.findLast((one) => one.market === market)?.fillSeq;
        const fillSeq = newest ?? (await readMarketProgress(q, market))?.fillSeq ?? 0;
        resets.push({ ...drafted, era: (before?.era ?? 0) + 1, fillSeq });
        // No fill hits it any more, though one may hit another with its number.
        draft.set(market, { seq: -1, sides: {}, cloids: new Map() });
      }

      return {
        land,
        attribute,
        reset,
        resets: () => resets,
        snapshots: () => firstHits,
        faults: () => faults,
        unexplained: () => unexplained,
        commit() {
          for (const [market, curve] of draft) kept.set(market, curve);
        },
      };
    },
  };
}

/** A side after one more fill. */
function sold(
  { gains, isBounded }: HitSide,
  { decomposition, state }: { decomposition: Decomposition; state: SideState },
): HitSide {
  return {
    state,
    gains: {
      gainUnits: gains.gainUnits + decomposition.operatorGainUnits,
      legs: gains.legs + decomposition.legs.length,
    },
    isBounded,
  };
}

/** A decomposition in which no order explains any part of the fill. */
export function unexplainedFill(fill: Pick<ChainFill, 'side' | 'baseUnits' | 'quoteUnits'>): Decomposition {
  return {
    legs: [],
    residualUnits: fill.quoteUnits,
    roundingUnits: 0n,
    compressionResidualUnits: fill.quoteUnits,
    operatorGainUnits: fill.side === 'ask' ? fill.quoteUnits : -fill.quoteUnits,
    missingBaseUnits: fill.baseUnits,
  };
}
