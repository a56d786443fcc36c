import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { ReadDeps } from './deps.js';
import { queryLimit, queryMarket } from './params.js';
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

/** Most fills that one answer holds. */
export const FILLS_LIMIT = 256;

export const fillsSchema = z.array(fillSchema).max(FILLS_LIMIT);

/**
 * GET /v0/fills?pair=&limit=: the newest fills of a market, newest last. One look at the newest fill tells whether the bytes that were written
 * last are still the answer: fills are only added, and a reversal takes them away from the newest on.
 */
export function fillsHandler(deps: ReadDeps): RouterMiddleware {
  const written = new Map<number, Remembered<Rendered>>();
  return async (ctx) => {
    const market = queryMarket(ctx, deps.markets());
    const limit = queryLimit(ctx, FILLS_LIMIT);
    if (limit < FILLS_LIMIT) {
      const fills = await deps.store.recentFills(market.index, limit);
      return sendRendered(ctx, render(fills.map((fill) => fillJson(market, fill))));
    }
    const remembered = written.get(market.index) ?? createRemembered<Rendered>();
    written.set(market.index, remembered);
    const answer = await remembered.get(await deps.store.newestFill(market.index), async () => {
      const fills = await deps.store.recentFills(market.index, FILLS_LIMIT);
      const rows: z.infer<typeof fillsSchema> = fills.map((fill) => fillJson(market, fill));
      return render(rows);
    });
    sendRendered(ctx, answer);
  };
}
