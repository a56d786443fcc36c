import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import { ticksToPrice, unitsToSize } from '../../core/market.js';
import type { Address, Market, Token } from '../../core/types.js';
import type { Orphans, OrphanedFill } from '../../ledger/chain/orphans.js';
import type { ReversalRow } from '../../ledger/chain/reversals.js';
import { servedTokens } from './limits.js';
import { addressSchema, decimalSchema, directionSchema, hashSchema, integerSchema, pairSchema } from './schemas.js';

/** Most lost fills, and most lost custody events, that one answer lists; the counts are of all. */
const LOST_LIMIT = 256;

/** A maker's notification of a lost fill, by the trade id that makers deduplicate by. */
const notificationSchema = z.strictObject({
  maker: addressSchema,
  oid: integerSchema,
  tid: integerSchema,
  price: decimalSchema,
  size: decimalSchema,
});

const fillSchema = z.strictObject({
  pair: pairSchema,
  fill_seq: integerSchema,
  direction: directionSchema,
  taker: addressSchema,
  base_amount: decimalSchema,
  quote_amount: decimalSchema,
  block_number: integerSchema,
  tx_hash: hashSchema,
  notifications: z.array(notificationSchema),
});

const eventSchema = z.strictObject({
  event: z.enum(['deposited', 'requested', 'settled', 'executed']),
  maker: addressSchema,
  token: z.string(),
  amount: decimalSchema,
  block_number: integerSchema,
  tx_hash: hashSchema,
});

export const lostSchema = z
  .strictObject({
    time_ms: integerSchema,
    /** The generation that reversed, and the last one that was kept. */
    generation: integerSchema,
    kept_generation: integerSchema,
    from_block: integerSchema,
    to_block: integerSchema,
    /** Scanned blocks that the chain no longer has. */
    depth: integerSchema,
    fill_count: integerSchema,
    event_count: integerSchema,
    /** The newest, at most 256 of each. */
    fills: z.array(fillSchema).max(LOST_LIMIT),
    events: z.array(eventSchema).max(LOST_LIMIT),
  })
  .meta({ id: 'Reversal' });

/** The wire form of a reversal and of what the chain lost with it. */
export function lostBody(
  { row, orphans }: { row: ReversalRow; orphans: Orphans },
  markets: readonly Market[],
): z.infer<typeof lostSchema> {
  const tokens = new Map<Address, Token>(servedTokens(markets).map((token) => [token.address, token]));
  return {
    time_ms: row.timeMs,
    generation: row.generation,
    kept_generation: row.keptGeneration,
    from_block: row.fromBlock,
    to_block: row.toBlock,
    depth: row.depth,
    fill_count: orphans.fills.length,
    event_count: orphans.custody.length,
    fills: orphans.fills.slice(-LOST_LIMIT).flatMap((fill) => fillBody(fill, markets)),
    events: orphans.custody.slice(-LOST_LIMIT).flatMap((event) => {
      const token = tokens.get(event.token);
      if (token === undefined) return [];
      return [
        {
          event: event.kind,
          maker: event.maker,
          token: token.symbol,
          amount: formatUnits(event.amountUnits, token.decimals),
          block_number: event.blockNumber,
          tx_hash: event.txHash,
        },
      ];
    }),
  };
}

function fillBody(fill: OrphanedFill, markets: readonly Market[]): z.infer<typeof fillSchema>[] {
  const market = markets[fill.market];
  if (market === undefined) return [];
  return [
    {
      pair: market.pair,
      fill_seq: fill.fillSeq,
      direction: fill.side === 'ask' ? 'buy' : 'sell',
      taker: fill.taker,
      base_amount: unitsToSize(market, fill.baseUnits),
      quote_amount: formatUnits(fill.quoteUnits, market.quote.decimals),
      block_number: fill.blockNumber,
      tx_hash: fill.txHash,
      notifications: fill.notifications.map(({ maker, oid, tid, priceTicks, baseUnits }) => ({
        maker,
        oid,
        tid,
        price: ticksToPrice(market, priceTicks),
        size: unitsToSize(market, baseUnits),
      })),
    },
  ];
}
