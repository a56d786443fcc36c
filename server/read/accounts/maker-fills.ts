import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../../core/amounts.js';
import { ticksToPrice, unitsToSize } from '../../../core/market.js';
import type { Market } from '../../../core/types.js';
import type { MakerFill, PartCursor } from '../../../ledger/market-data/history.js';
import { COSTS, costsOf } from '../costs.js';
import type { ReadDeps } from '../deps.js';
import { addressOf, queryCursor, queryLimit, queryPair } from '../params.js';
import { formatOf, type RowStreams } from '../row-stream.js';
import {
  addressSchema,
  decimalSchema,
  hashSchema,
  integerSchema,
  pairSchema,
  signedDecimalSchema,
} from '../schemas.js';

export const PAGE_LIMIT = 1_000;
const PAGE_DEFAULT = 100;

const makerFillSchema = z
  .strictObject({
    pair: pairSchema,
    fill_seq: integerSchema,
    /** Deduplicate by maker and tid. */
    tid: integerSchema,
    oid: integerSchema,
    cloid: z.string().nullable(),
    /** Side of the maker's order: on a bid the maker bought. */
    side: z.enum(['bid', 'ask']),
    price: decimalSchema,
    base_amount: decimalSchema,
    quote_amount: decimalSchema,
    /** The maker's balance of the base token before it. */
    start_base: signedDecimalSchema,
    /** The maker's profit from closing with it, in the quote token: see the guide for makers. */
    realised_pnl: signedDecimalSchema,
    taker: addressSchema,
    block_number: integerSchema,
    tx_hash: hashSchema,
    timestamp_ms: integerSchema,
    /** The `before` of what is older. */
    cursor: z.string(),
  })
  .meta({ id: 'MakerFill' });

export const makerFillsSchema = z.strictObject({
  maker: addressSchema,
  /** Newest first. */
  fills: z.array(makerFillSchema).max(PAGE_LIMIT),
  /** The `before` of the next page; null when there is none. */
  next: z.string().nullable(),
});

const COLUMNS = Object.keys(makerFillSchema.shape);

/** GET /v0/makers/{maker}/fills?pair=&limit=&before=: the fills of a maker's orders, newest first. */
export function makerFillsHandler(deps: ReadDeps, streams: RowStreams): RouterMiddleware {
  return async (ctx) => {
    const maker = addressOf(ctx.params.maker ?? '');
    const market = queryPair(ctx, deps.markets())?.index;
    const cursor = queryCursor(ctx, 4);
    const before =
      cursor === null
        ? undefined
        : { timestampMs: cursor[0]!, market: cursor[1]!, fillSeq: cursor[2]!, partNo: cursor[3]! };
    const read = async (after: PartCursor | undefined, limit: number) => {
      const fills = await deps.store.makerFills({ maker, market, before: after, limit });
      const rows = fills.map((fill) => rowOf(deps.markets()[fill.market]!, fill));
      return { rows, next: fills.length < limit ? null : fills.at(-1)! };
    };
    const format = formatOf(ctx);
    if (format !== 'json')
      return streams.send<PartCursor>(ctx, format, COLUMNS, (after, limit) => read(after ?? before, limit));
    const limit = queryLimit(ctx, PAGE_LIMIT, PAGE_DEFAULT);
    const { rows, next } = await costsOf(deps).holding(ctx, COSTS.makerFills, limit, () => read(before, limit));
    costsOf(deps).add(ctx, COSTS.makerFills, rows.length);
    const body: z.infer<typeof makerFillsSchema> = { maker, fills: rows, next: next === null ? null : cursorOf(next) };
    ctx.body = body;
  };
}

const cursorOf = ({ timestampMs, market, fillSeq, partNo }: PartCursor): string =>
  [timestampMs, market, fillSeq, partNo].join('-');

function rowOf(market: Market, fill: MakerFill): z.infer<typeof makerFillSchema> {
  return {
    pair: market.pair,
    fill_seq: fill.fillSeq,
    tid: fill.tid,
    oid: fill.oid,
    cloid: fill.cloid,
    side: fill.side,
    price: ticksToPrice(market, fill.priceTicks),
    base_amount: unitsToSize(market, fill.baseUnits),
    quote_amount: formatUnits(fill.quoteUnits, market.quote.decimals),
    start_base: unitsToSize(market, fill.startBaseUnits),
    realised_pnl: formatUnits(fill.closedUnits, market.quote.decimals),
    taker: fill.taker,
    block_number: fill.blockNumber,
    tx_hash: fill.txHash,
    timestamp_ms: fill.timestampMs,
    cursor: cursorOf(fill),
  };
}
