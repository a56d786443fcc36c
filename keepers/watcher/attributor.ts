import {
  attributeFill,
  consumptionMismatchUnits,
  openSide,
  orderFillsOf,
  type SideState,
} from '../../core/attribution.js';
import { tradeId } from '../../core/trade-id.js';
import { snapshotCloids } from '../../core/snapshot.js';
import type { ChainFill, Decomposition, Market, MarketSnapshot, Side } from '../../core/types.js';
import { readFillsAfter, type PastFill } from '../../ledger/past-fills.js';
import { readPublication } from '../../ledger/publication-log.js';
import type { SnapshotStore } from '../../ledger/snapshots.js';
import type { AttributedFill, Queryable } from '../../ledger/types.js';

/** Why a fill could not be explained as it should; it is booked all the same, and the ledger halts. */
export interface AttributionFault {
  code: 'unexplained_curve' | 'carry_mismatch' | 'missing_depth';
  message: string;
}

/** Attribution of the fills of one scan. Nothing of it is remembered unless `commit` is called. */
export interface AttributionRun {
  attribute(market: Market, fill: ChainFill): Promise<AttributedFill>;
  /** Snapshots of curves that were hit for the first time. */
  snapshots(): { seq: number; snapshot: MarketSnapshot }[];
  faults(): AttributionFault[];
  commit(): void;
}

export interface Attributor {
  begin(q: Queryable): AttributionRun;
}

/** The newest curve of a market that was hit; an older one is never hit again. */
interface HitCurve {
  seq: number;
  sides: Partial<Record<Side, SideState>>;
  /** Client order ids of the curve's snapshot, by order. */
  cloids: ReadonlyMap<number, string>;
}

/** What an attribution begins with. */
interface OpenCurve {
  state: SideState;
  cloids: HitCurve['cloids'];
}

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

      /** The curve's side as it stood before `fill`: its snapshot less the carry, less what it sold already. */
      async function open(market: Market, fill: ChainFill): Promise<OpenCurve | null> {
        const publication = await readPublication(q, market.index, fill.curveSeq);
        if (publication === null) return null;
        const snapshot = await snapshots.get(q, publication);
        const stored = await readFillsAfter(q, market.index, snapshot.fillSeq);
        const past = [...stored, ...current.filter((one) => one.market === market.index)];
        const own = past.filter((one) => one.curveSeq === fill.curveSeq);
        if (own.length === 0) firstHits.push({ seq: fill.curveSeq, snapshot });
        const late = past.filter((one) => one.curveSeq < fill.curveSeq).flatMap((one) => one.orderFills);
        const ownOnSide = own.filter((one) => one.side === fill.side);
        const state = ownOnSide.reduce(
          (before, one) => attributeFill(market, before, one).state,
          openSide(market, snapshot, fill.side, late),
        );
        return { state, cloids: snapshotCloids(snapshot) };
      }

      function explain(market: Market, fill: ChainFill, { state, cloids }: OpenCurve): Decomposition {
        const mismatch = consumptionMismatchUnits(state, fill.consumedBeforeUnits);
        if (mismatch !== 0n) {
          faults.push({
            code: 'carry_mismatch',
            message:
              `fill ${fill.fillSeq} of ${market.pair} entered curve ${fill.curveSeq} after ${fill.consumedBeforeUnits} base ` +
              `units, ${mismatch} more than the ledger knows of`,
          });
        }
        const attributed = attributeFill(market, state, fill);
        if (attributed.decomposition.missingBaseUnits !== 0n) {
          faults.push({
            code: 'missing_depth',
            message:
              `no order explains ${attributed.decomposition.missingBaseUnits} base units of fill ${fill.fillSeq} ` +
              `of ${market.pair}`,
          });
        }
        const before = draft.get(market.index) ?? kept.get(market.index);
        const sides = before?.seq === fill.curveSeq ? before.sides : {};
        draft.set(market.index, { seq: fill.curveSeq, sides: { ...sides, [fill.side]: attributed.state }, cloids });
        return attributed.decomposition;
      }

      async function attribute(market: Market, fill: ChainFill): Promise<AttributedFill> {
        const hit = draft.get(market.index) ?? kept.get(market.index);
        const known = hit?.seq === fill.curveSeq ? hit.sides[fill.side] : undefined;
        const curve = known === undefined ? await open(market, fill) : { state: known, cloids: hit!.cloids };
        if (curve === null) {
          faults.push({
            code: 'unexplained_curve',
            message: `fill ${fill.fillSeq} of ${market.pair} hit curve ${fill.curveSeq}, which was never prepared here`,
          });
        }
        const decomposition = curve === null ? unexplained(fill) : explain(market, fill, curve);
        const orderFills = orderFillsOf(market, fill.side, decomposition);
        current.push({ ...fill, orderFills });
        return {
          fill,
          decomposition,
          orderFills: orderFills.map((one) => ({
            ...one,
            tid: tradeId(deploymentId, market.id, fill, one.oid),
            cloid: curve?.cloids.get(one.oid) ?? null,
          })),
        };
      }

      return {
        attribute,
        snapshots: () => firstHits,
        faults: () => faults,
        commit() {
          for (const [market, curve] of draft) kept.set(market, curve);
        },
      };
    },
  };
}

/** The whole fill at the operator's expense: nobody's orders explain it. */
function unexplained(fill: ChainFill): Decomposition {
  return {
    legs: [],
    residualUnits: fill.quoteUnits,
    roundingUnits: 0n,
    compressionResidualUnits: fill.quoteUnits,
    operatorGainUnits: fill.side === 'ask' ? fill.quoteUnits : -fill.quoteUnits,
    missingBaseUnits: fill.baseUnits,
  };
}
