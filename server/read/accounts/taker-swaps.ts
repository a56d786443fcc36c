import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../../core/amounts.js';
import type { Address, Token } from '../../../core/types.js';
import type { SwapCursor, TakerSwap } from '../../../ledger/market-data/history.js';
import { COSTS, costsOf } from '../costs.js';
import type { ReadDeps } from '../deps.js';
import { fillJson } from '../fills.js';
import { servedTokens } from '../limits.js';
import { PAGE_LIMIT } from './maker-fills.js';
import { addressOf, queryCursor, queryLimit } from '../params.js';
import { formatOf, type RowStreams } from '../row-stream.js';
import { addressSchema, decimalSchema, hashSchema, integerSchema, pairSchema } from '../schemas.js';

const PAGE_DEFAULT = 100;

const swapSchema = z
  .strictObject({
    /** `direct`: the address sent the swap. `signed`: it signed an order that was executed for it, by whatever route. */
    kind: z.enum(['direct', 'signed']),
    /** Of a direct swap. */
    pair: pairSchema.nullable(),
    fill_seq: integerSchema.nullable(),
    /** A symbol; for a token that no listed pair trades, its address. */
    token_in: z.string(),
    amount_in: decimalSchema,
    token_out: z.string(),
    amount_out: decimalSchema,
    /**
     * For a direct swap the bought token, and taken from what was received; for a signed order the sold token, and contained in what was
     * paid.
     */
    fee_token: z.string(),
    fee: decimalSchema,
    recipient: addressSchema,
    block_number: integerSchema,
    tx_hash: hashSchema,
    /** Null when the block is no longer kept. */
    timestamp_ms: integerSchema.nullable(),
    /** The `before` of what is older. */
    cursor: z.string(),
  })
  .meta({ id: 'TakerSwap' });

export const takerSwapsSchema = z.strictObject({
  taker: addressSchema,
  /** Newest first. */
  swaps: z.array(swapSchema).max(PAGE_LIMIT),
  /** The `before` of the next page; null when there is none. */
  next: z.string().nullable(),
});

/** GET /v0/takers/{address}/swaps?limit=&before=: swaps that an address sent or signed, newest first. */
export function takerSwapsHandler(deps: ReadDeps, streams: RowStreams): RouterMiddleware {
  return async (ctx) => {
    const taker = addressOf(ctx.params.address ?? '');
    const cursor = queryCursor(ctx, 2);
    const before = cursor === null ? undefined : { blockNumber: cursor[0]!, logIndex: cursor[1]! };
    const read = async (after: SwapCursor | undefined, limit: number) => {
      const swaps = await deps.store.takerSwaps({ taker, before: after, limit });
      return { rows: swaps.map((swap) => rowOf(deps, swap)), next: swaps.length < limit ? null : swaps.at(-1)! };
    };
    const format = formatOf(ctx);
    if (format !== 'json') {
      const columns = Object.keys(swapSchema.shape);
      return streams.send<SwapCursor>(ctx, format, columns, (after, limit) => read(after ?? before, limit));
    }
    const limit = queryLimit(ctx, PAGE_LIMIT, PAGE_DEFAULT);
    const { rows, next } = await costsOf(deps).holding(ctx, COSTS.takerSwaps, limit, () => read(before, limit));
    costsOf(deps).add(ctx, COSTS.takerSwaps, rows.length);
    const body: z.infer<typeof takerSwapsSchema> = { taker, swaps: rows, next: next === null ? null : cursorOf(next) };
    ctx.body = body;
  };
}

const cursorOf = ({ blockNumber, logIndex }: SwapCursor): string => `${blockNumber}-${logIndex}`;

function rowOf(deps: Pick<ReadDeps, 'markets'>, swap: TakerSwap): z.infer<typeof swapSchema> {
  if (swap.kind === 'direct') {
    const row = fillJson(deps.markets()[swap.fill.market]!, swap.fill);
    return {
      kind: swap.kind,
      pair: row.pair,
      fill_seq: row.fill_seq,
      token_in: row.token_in,
      amount_in: row.amount_in,
      token_out: row.token_out,
      amount_out: row.amount_out,
      fee_token: row.fee.token,
      fee: row.fee.amount,
      recipient: row.recipient,
      block_number: row.block_number,
      tx_hash: row.tx_hash,
      timestamp_ms: row.timestamp_ms,
      cursor: cursorOf(swap),
    };
  }
  const tokens = new Map<Address, Token>(servedTokens(deps.markets()).map((token) => [token.address, token]));
  const [tokenIn, tokenOut] = [tokens.get(swap.tokenIn), tokens.get(swap.tokenOut)];
  // Without known decimals an amount is in the token's smallest units.
  return {
    kind: swap.kind,
    pair: null,
    fill_seq: null,
    token_in: tokenIn?.symbol ?? swap.tokenIn,
    amount_in: formatUnits(swap.amountInUnits, tokenIn?.decimals ?? 0),
    token_out: tokenOut?.symbol ?? swap.tokenOut,
    amount_out: formatUnits(swap.amountOutUnits, tokenOut?.decimals ?? 0),
    fee_token: tokenIn?.symbol ?? swap.tokenIn,
    fee: formatUnits(swap.feeUnits, tokenIn?.decimals ?? 0),
    recipient: swap.recipient,
    block_number: swap.blockNumber,
    tx_hash: swap.txHash,
    timestamp_ms: swap.timestampMs,
    cursor: cursorOf(swap),
  };
}
