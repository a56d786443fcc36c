import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import { bigHex, decodeSide } from '../../core/curve/words.js';
import { subticksToPrice, unitsToSize } from '../../core/market.js';
import type { Hex, Market, MarketSnapshot, Side, SnapshotOrder } from '../../core/types.js';
import { publicationState } from '../../ledger/publications/publication-states.js';
import type { Publication } from '../../ledger/types.js';
import { notFound } from '../errors.js';
import { COSTS, costsOf, UNBOUNDED_UNITS } from './costs.js';
import type { PostedCurve, ReadDeps } from './deps.js';
import { marketOf, sequenceOf } from './params.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema, pairSchema } from './schemas.js';

/** A segment of the curve: a base size at one marginal price. */
const segmentSchema = z.strictObject({ size: decimalSchema, price: decimalSchema }).meta({ id: 'CurveSegment' });

const orderSchema = z
  .strictObject({ oid: integerSchema, maker: addressSchema, ticks: integerSchema, lots: integerSchema })
  .meta({ id: 'SnapshotOrder' });

const snapshotSchema = z.strictObject({
  fill_seq: integerSchema,
  ask_volume: decimalSchema,
  bid_volume: decimalSchema,
  /** Best price first, then lower maker address, then lower oid. */
  asks: z.array(orderSchema),
  bids: z.array(orderSchema),
});

const wordSchema = z.string().regex(/^0x[0-9a-f]{64}$/);

export const curveSchema = z
  .strictObject({
    pair: pairSchema,
    curve_seq: integerSchema,
    /** The curve that a touch prolongs or a partial post amends; equal to curve_seq for a full post. */
    base_seq: integerSchema,
    /** `landed`: executable until its deadline; `superseded`: a higher curve_seq has landed; `dead`: its deadline has passed. */
    state: z.enum(['landed', 'superseded', 'dead']),
    /** Chain time, exclusive. */
    deadline_sec: integerSchema,
    block_number: integerSchema,
    block_timestamp_sec: integerSchema,
    tx_hash: hashSchema,
    words_hash: hashSchema,
    /**
     * Base by which each side was consumed beyond what had been taken since the snapshot, when the curve landed. A touch has what the
     * curve raised that it prolongs.
     */
    raised_ask: decimalSchema,
    raised_bid: decimalSchema,
    /** The publication behind the curve; null for a curve that this platform never prepared, which halts the ledger. */
    prepared: z
      .strictObject({
        kind: z.enum(['full', 'touch', 'partial']),
        prepared_ms: integerSchema,
        /** What the curve was cut from: all rows of the order log and all generations up to these, at this time. */
        cut: z.strictObject({ order_seq: integerSchema, generation: integerSchema, time_ms: integerSchema }),
        snapshot_hash: hashSchema,
        ask_words: z.array(wordSchema),
        bid_words: z.array(wordSchema),
        /** Leading segments of each side that equal the book: consumption that ends within them is not raised. */
        exact_ask_knots: integerSchema,
        exact_bid_knots: integerSchema,
        /** How much worse than the book the curve is for a taker at the worst amount, in basis points; null where an older version prepared it. */
        ask_error_bps: decimalSchema.nullable(),
        bid_error_bps: decimalSchema.nullable(),
        /** The words read as a walk reads them, best price first. */
        asks: z.array(segmentSchema),
        bids: z.array(segmentSchema),
      })
      .nullable(),
    /** The book behind the curve, if a fill hit it, and once neither it nor a touch that prolongs it can be executed any more. */
    snapshot: snapshotSchema.nullable(),
  })
  .meta({ id: 'PostedCurve' });

type CurveBody = z.infer<typeof curveSchema>;

/** GET /v0/curves/{pair}/{curve_seq}: one posted curve. Throws 404 NOT_FOUND for a number that no scanned block has. */
export function curveHandler(deps: ReadDeps): RouterMiddleware {
  return async (ctx) => {
    const market = marketOf(deps.markets(), ctx.params.pair ?? '');
    const seq = sequenceOf(ctx.params.curve_seq ?? '', 'curve_seq');
    const posted = await costsOf(deps).holding(ctx, COSTS.curve, UNBOUNDED_UNITS, () =>
      deps.store.postedCurve(market.index, seq),
    );
    if (posted === null) throw notFound(`No curve ${seq} of ${market.pair} was seen on-chain`);
    const { post, snapshot, isProlonged, landedSeq, headSec } = posted;
    const state = publicationState(post, { signed: true, landedSeq, headSec });
    const shown = state === 'landed' || isProlonged ? null : snapshot;
    // Of a book that is not shown the points would tell the size.
    if (shown !== null) costsOf(deps).add(ctx, COSTS.curve, shown.asks.length + shown.bids.length);
    ctx.body = curveBody(market, posted, { state, shown });
  };
}

function curveBody(
  market: Market,
  { post, publication, raised }: PostedCurve,
  { state, shown }: { state: ReturnType<typeof publicationState>; shown: MarketSnapshot | null },
): object {
  return {
    pair: market.pair,
    curve_seq: post.seq,
    base_seq: post.baseSeq,
    state,
    deadline_sec: post.deadlineSec,
    block_number: post.blockNumber,
    block_timestamp_sec: post.blockTimestampSec,
    tx_hash: post.txHash,
    words_hash: post.wordsHash,
    raised_ask: unitsToSize(market, raised.ask),
    raised_bid: unitsToSize(market, raised.bid),
    prepared: publication === null ? null : preparedBody(market, publication),
    snapshot: shown === null ? null : snapshotBody(market, shown),
  };
}

const wordHex = (word: bigint): Hex => `0x${bigHex(word, 32)}`;

/** A basis point is 10^5 ppb. */
const errorBps = (ppb: number | null): string | null => (ppb === null ? null : formatUnits(BigInt(ppb), 5));

function preparedBody(market: Market, publication: Publication): CurveBody['prepared'] {
  const segments = (side: Side, words: readonly bigint[]) =>
    decodeSide(market, side, words).map(({ lengthUnits, subticks }) => ({
      size: unitsToSize(market, lengthUnits),
      price: subticksToPrice(market, subticks),
    }));
  const { cut, askWords, bidWords } = publication;
  return {
    kind: publication.kind,
    prepared_ms: publication.preparedMs,
    cut: { order_seq: cut.orderSeq, generation: cut.generation, time_ms: cut.timeMs },
    snapshot_hash: publication.snapshotHash,
    ask_words: askWords.map(wordHex),
    bid_words: bidWords.map(wordHex),
    exact_ask_knots: publication.exactAskKnots,
    exact_bid_knots: publication.exactBidKnots,
    ask_error_bps: errorBps(publication.askErrorPpb),
    bid_error_bps: errorBps(publication.bidErrorPpb),
    asks: segments('ask', askWords),
    bids: segments('bid', bidWords),
  };
}

/** Ticks and lots are bigints, which become JSON integers. */
function snapshotBody(market: Market, snapshot: MarketSnapshot): object {
  const orders = (list: readonly SnapshotOrder[]) =>
    list.map(({ oid, maker, priceTicks, sizeLots }) => ({ oid, maker, ticks: priceTicks, lots: sizeLots }));
  return {
    fill_seq: snapshot.fillSeq,
    ask_volume: unitsToSize(market, snapshot.askVolumeUnits),
    bid_volume: unitsToSize(market, snapshot.bidVolumeUnits),
    asks: orders(snapshot.asks),
    bids: orders(snapshot.bids),
  };
}
