/**
 * What late fills, those between the cut of a curve and its landing, cost the takers after them: the depth that raising the consumption
 * withheld, and the price paid above the exact book, beside what the same trades would have cost had nothing been raised.
 */
import { depthUnits, costOf, quoteCeil, quoteFloor, remaining } from '../../core/curve/walk.js';
import { decodeSide } from '../../core/curve/words.js';
import type { Decomposition, Market, Segment, Side } from '../../core/types.js';
import { readAttributedFill } from '../../ledger/chain/fills.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readPublication } from '../../ledger/publications/publication-log.js';
import { raisedBy } from '../../ledger/publications/raises.js';
import type { Publication, Queryable } from '../../ledger/types.js';

/** What some trades cost above the best orders that the book had for them, in bps of those; below zero, the operator paid. */
interface Overpay {
  trades: number;
  meanBps: number;
  lowestBps: number;
  worstBps: number;
}

export interface LateFills {
  /** Sides of posted curves, and those of which something was taken between cut and landing. */
  sides: number;
  lateSides: number;
  /** Of these the ones that were raised; what lies within exact segments isn't. */
  raisedSides: number;
  /** Depth that a late fill withheld until the next post, in percent of the side. Of all late sides. */
  withheldMeanPercent: number;
  withheldWorstPercent: number;
  /** Of the trades on late sides, as they were and as they would have been. */
  afterLate: Overpay;
  unraised: Overpay;
  /** Of all other trades. */
  others: Overpay;
}

interface SeenPost {
  market: number;
  seq: number;
  snap_ask_units: string;
  snap_bid_units: string;
}

const SIDES: readonly Side[] = ['ask', 'bid'];
/** Ratios are computed in parts of this, so that amounts of any size become a number. */
const PARTS = 1_000_000_000n;

/** Looks at every curve that landed and every fill. */
export async function measureLateFills(q: Queryable): Promise<LateFills> {
  const markets = await readMarkets(q);
  const seen = await q('posts_seen').whereRaw('seq = posted_seq').orderBy(['market', 'seq']).select<SeenPost[]>();
  const result = { sides: 0, lateSides: 0, raisedSides: 0 };
  const withheld: number[] = [];
  const bps = { afterLate: [] as number[], unraised: [] as number[], others: [] as number[] };
  for (const post of seen) {
    const market = markets[post.market];
    const publication = await readPublication(q, post.market, post.seq);
    if (market === undefined || publication === null) continue;
    const raised = raisedBy(publication, {
      snapAskUnits: BigInt(post.snap_ask_units),
      snapBidUnits: BigInt(post.snap_bid_units),
    });
    const late = await takenBefore(q, publication);
    const fills = await fillsOn(q, post);
    for (const side of SIDES) {
      const segments = decodeSide(market, side, side === 'ask' ? publication.askWords : publication.bidWords);
      if (segments.length === 0) continue;
      result.sides += 1;
      const isLate = late.has(side);
      if (isLate) {
        result.lateSides += 1;
        result.raisedSides += raised[side] > 0n ? 1 : 0;
        withheld.push(percentOf(raised[side], depthUnits(segments)));
      }
      for (const one of fills.filter(({ fill }) => fill.side === side)) {
        (isLate ? bps.afterLate : bps.others).push(overpayBps(side, one.fill.quoteUnits, one.decomposition));
        if (!isLate) continue;
        const quoteUnits = quoteFrom(market, side, segments, {
          startUnits: one.fill.consumedBeforeUnits - raised[side],
          baseUnits: one.fill.baseUnits,
        });
        if (quoteUnits !== null) bps.unraised.push(overpayBps(side, quoteUnits, one.decomposition));
      }
    }
  }
  return {
    ...result,
    withheldMeanPercent: mean(withheld),
    withheldWorstPercent: Math.max(0, ...withheld),
    afterLate: overpay(bps.afterLate),
    unraised: overpay(bps.unraised),
    others: overpay(bps.others),
  };
}

/** Sides of which fills on older curves took something after the cut of a curve. */
async function takenBefore(q: Queryable, { market, fillSeq, seq }: Publication): Promise<ReadonlySet<Side>> {
  const rows = await q('fills')
    .where({ market })
    .where('fill_seq', '>', fillSeq)
    .where('curve_seq', '<', seq)
    .distinct<{ side: Side }[]>('side');
  return new Set(rows.map(({ side }) => side));
}

/** The fills of a posted curve and of the touches that go back to it. */
async function fillsOn(q: Queryable, { market, seq }: SeenPost) {
  const curves = q('posts_seen').where({ market, posted_seq: seq }).select('seq');
  const rows = await q('fills').where({ market }).whereIn('curve_seq', curves).orderBy('fill_seq').select();
  return Promise.all(rows.map((row) => readAttributedFill(q, row)));
}

/** What a trade from a consumption on costs; null beyond the depth. */
function quoteFrom(
  market: Market,
  side: Side,
  segments: readonly Segment[],
  { startUnits, baseUnits }: { startUnits: bigint; baseUnits: bigint },
): bigint | null {
  const cost = costOf(remaining(segments, startUnits), baseUnits);
  if (cost === null) return null;
  return side === 'ask' ? quoteCeil(market, cost) : quoteFloor(market, cost);
}

function overpayBps(side: Side, quoteUnits: bigint, { legs }: Pick<Decomposition, 'legs'>): number {
  const book = legs.reduce((sum, leg) => sum + leg.quoteUnits, 0n);
  return percentOf(side === 'ask' ? quoteUnits - book : book - quoteUnits, book) * 100;
}

function percentOf(part: bigint, whole: bigint): number {
  return whole === 0n ? 0 : parseInt(((part * PARTS * 100n) / whole).toString(), 10) / 1e9;
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

const overpay = (bps: readonly number[]): Overpay => ({
  trades: bps.length,
  meanBps: mean(bps),
  lowestBps: bps.length === 0 ? 0 : Math.min(...bps),
  worstBps: bps.length === 0 ? 0 : Math.max(...bps),
});

/** One line per figure. */
export function lateFillLines({ afterLate, unraised, others, ...late }: LateFills): string[] {
  const line = (name: string, { trades, meanBps, lowestBps, worstBps }: Overpay): string =>
    `${name}: ${trades} trades, mean ${meanBps.toFixed(3)} bps, lowest ${lowestBps.toFixed(3)}, worst ${worstBps.toFixed(3)}`;
  return [
    `late fills: on ${late.lateSides} of ${late.sides} sides of posted curves, ${late.raisedSides} of them raised`,
    `depth withheld until the next post: mean ${late.withheldMeanPercent.toFixed(3)} % of the side, ` +
      `worst ${late.withheldWorstPercent.toFixed(3)} %`,
    line('paid above the book after late fills', afterLate),
    line('the same trades if nothing were raised', unraised),
    line('all other trades', others),
  ];
}
