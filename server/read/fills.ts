import type { RouterMiddleware } from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import { badRequest } from '../errors.js';
import { COSTS, costsOf } from './costs.js';
import type { ReadDeps } from './deps.js';
import { queryAddress, queryLimit, queryMarket, querySequence } from './params.js';
import { formatOf, type RowStreams } from './row-stream.js';
import { createRemembered, render, sendRendered, type Remembered, type Rendered } from '../rendered.js';
import { formatUnits } from '../../core/amounts.js';
import type { ChainFill, Market } from '../../core/types.js';
import {
  addressSchema,
  decimalSchema,
  directionSchema,
  feeSchema,
  hashSchema,
  integerSchema,
  pairSchema,
} from './schemas.js';

/** One on-chain fill. Amounts are the whole trade; `amount_out` is what the recipient got, after the fee. */
export const fillSchema = z
  .strictObject({
    pair: pairSchema,
    fill_seq: integerSchema,
    curve_seq: integerSchema,
    direction: directionSchema,
    token_in: z.string(),
    amount_in: decimalSchema,
    token_out: z.string(),
    amount_out: decimalSchema,
    fee: feeSchema.extend({ taker: addressSchema, token: z.string() }),
    taker: addressSchema,
    recipient: addressSchema,
    block_number: integerSchema,
    block_hash: hashSchema,
    tx_hash: hashSchema,
    timestamp_ms: integerSchema,
  })
  .meta({ id: 'Fill' });

export type FillJson = z.infer<typeof fillSchema>;

/** The taker's direction: it consumes asks when it buys base. */
export const directionOf = (fill: ChainFill): 'buy' | 'sell' => (fill.side === 'ask' ? 'buy' : 'sell');

/** The taker's fee, in the output token. */
export function feeOf(market: Market, fill: ChainFill): FillJson['fee'] {
  const token = directionOf(fill) === 'buy' ? market.base : market.quote;
  return { taker: fill.taker, token: token.symbol, amount: formatUnits(fill.feeUnits, token.decimals) };
}

/** The wire form of a fill. The curve's gross output is amount_out + fee.amount. */
export function fillJson(market: Market, fill: ChainFill): FillJson {
  const direction = directionOf(fill);
  const base = { token: market.base, units: fill.baseUnits };
  const quote = { token: market.quote, units: fill.quoteUnits };
  const [input, output] = direction === 'buy' ? [quote, base] : [base, quote];
  return {
    pair: market.pair,
    fill_seq: fill.fillSeq,
    curve_seq: fill.curveSeq,
    direction,
    token_in: input.token.symbol,
    amount_in: formatUnits(input.units, input.token.decimals),
    token_out: output.token.symbol,
    amount_out: formatUnits(output.units - fill.feeUnits, output.token.decimals),
    fee: feeOf(market, fill),
    taker: fill.taker,
    recipient: fill.recipient,
    block_number: fill.blockNumber,
    block_hash: fill.blockHash,
    tx_hash: fill.txHash,
    timestamp_ms: fill.timestampMs,
  };
}

/** Fills of an answer that asks for no other number. */
export const FILLS_DEFAULT = 256;
/** Most fills that one answer holds. */
export const FILLS_LIMIT = 1_000;

export const fillsSchema = z.array(fillSchema).max(FILLS_LIMIT);

const COLUMNS = [
  ...['pair', 'fill_seq', 'curve_seq', 'direction', 'token_in', 'amount_in', 'token_out', 'amount_out'],
  ...['fee.taker', 'fee.token', 'fee.amount', 'taker', 'recipient', 'block_number', 'block_hash', 'tx_hash'],
  'timestamp_ms',
];

/**
 * GET /v0/fills?pair=&limit=&before=&maker=&taker=: the newest fills of a market, or those before one, newest last; as NDJSON or CSV newest
 * first, and all where no limit is given.
 */
export function fillsHandler(deps: ReadDeps, streams: RowStreams): RouterMiddleware {
  const newest = newestFillsOf(deps);
  return async (ctx) => {
    const market = queryMarket(ctx, deps.markets());
    const before = querySequence(ctx, 'before');
    const [maker, taker] = [queryAddress(ctx, 'maker'), queryAddress(ctx, 'taker')];
    if (maker !== undefined && taker !== undefined) throw badRequest('Ask for the fills of a maker or of a taker');
    const page = { market: market.index, maker, taker };
    const format = formatOf(ctx);
    if (format !== 'json')
      return streams.send<number>(ctx, format, COLUMNS, async (after, most) => {
        const fills = await deps.store.fillsPage({ ...page, before: after ?? before, limit: most });
        const next = fills.length < most ? null : fills.at(-1)!.fillSeq;
        return { rows: fills.map((fill) => fillJson(market, fill)), next };
      });
    const limit = queryLimit(ctx, FILLS_LIMIT, FILLS_DEFAULT);
    if (limit === FILLS_DEFAULT && before === undefined && maker === undefined && taker === undefined)
      return sendRendered(ctx, await newest(ctx, market));
    const read = () => deps.store.fillsPage({ ...page, before, limit });
    const fills = await costsOf(deps).holding(ctx, COSTS.fills, limit, read);
    costsOf(deps).add(ctx, COSTS.fills, fills.length);
    sendRendered(ctx, renderFills(market, fills));
  };
}

const renderFills = (market: Market, fills: readonly ChainFill[]): Rendered =>
  render(fills.toReversed().map((fill): z.infer<typeof fillSchema> => fillJson(market, fill)));

/**
 * The newest fills of a market, as they are answered. The newest fill's key decides whether the last answer is still valid: fills are only
 * added, and a reversal removes them from the newest on. After one the key of before is the newest again, so that an answer is kept under
 * the key of the state that it was read in, and under no older one.
 */
function newestFillsOf(deps: ReadDeps): (ctx: Context, market: Market) => Promise<Rendered> {
  const written = new Map<number, Remembered<{ key: string; answer: Rendered }>>();
  return async (ctx, market) => {
    const remembered = written.get(market.index) ?? createRemembered<{ key: string; answer: Rendered }>();
    written.set(market.index, remembered);
    const read = async (): Promise<{ key: string; answer: Rendered }> => {
      const { key, fills } = await deps.store.newestFills(market.index, FILLS_DEFAULT);
      costsOf(deps).add(ctx, COSTS.fills, fills.length);
      return { key, answer: renderFills(market, fills) };
    };
    const newest = await deps.store.newestFill(market.index);
    const isOf = ({ key }: { key: string }): boolean => key === newest;
    const found = await remembered.get(newest, read, isOf);
    // It may have been read for an earlier request, before the reversal that made this key the newest again.
    return (isOf(found) ? found : await read()).answer;
  };
}
