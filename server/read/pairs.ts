import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { formatUnits } from '../../core/amounts.js';
import type { Address, Market } from '../../core/types.js';
import type { TokenFinding } from '../../ledger/types.js';
import type { ReadDeps } from './deps.js';
import { render, sendRendered, type Rendered } from '../rendered.js';
import { decimalSchema, pairSchema } from './schemas.js';

export const pairsSchema = z.array(
  z.strictObject({
    pair: pairSchema,
    base_token: z.string(),
    quote_token: z.string(),
    tick_size: decimalSchema,
    lot_size: decimalSchema,
    /** Least value of an order, in the quote token. */
    min_order_value: decimalSchema,
    /** The operator delisted it: no orders are taken, and its curve expires. It keeps its place in the list. */
    delisted: z.boolean(),
    /** Why one of its tokens is in quarantine, and with it the market: no orders are taken, and nothing is quoted. Null when none is. */
    quarantine: z.string().nullable(),
  }),
);

/** GET /v0/pairs: every market that was ever listed, in listing order, written once per change. */
export function pairsHandler(deps: ReadDeps): RouterMiddleware {
  let written: { markets: readonly Market[]; name: string; answer: Rendered } | null = null;
  return (ctx) => {
    const markets = deps.markets();
    const delisted = deps.delisted();
    // The array grows in place; its elements never change.
    const codes = quarantineCodes(deps.findings());
    const held = [...codes].map((one) => one.join('=')).sort();
    const name = `${markets.length}:${[...delisted].sort((a, b) => a - b).join()}:${held.join()}`;
    if (written?.markets !== markets || written.name !== name) {
      const rows = markets.map((market) => ({
        ...pairRow(market, deps.minOrderUnits(market), delisted.has(market.index)),
        quarantine: codes.get(market.base.address) ?? codes.get(market.quote.address) ?? null,
      }));
      written = { markets, name, answer: render(rows) };
    }
    sendRendered(ctx, written.answer);
  };
}

/** Why each token in quarantine is there; of several reasons the oldest. */
function quarantineCodes(findings: readonly TokenFinding[]): Map<Address, string> {
  const codes = new Map<Address, string>();
  for (const { token, state, code } of findings) {
    if (state === 'quarantined' && !codes.has(token)) codes.set(token, code);
  }
  return codes;
}

function pairRow(
  market: Market,
  minOrderUnits: bigint,
  delisted: boolean,
): Omit<z.infer<typeof pairsSchema>[number], 'quarantine'> {
  return {
    pair: market.pair,
    base_token: market.base.symbol,
    quote_token: market.quote.symbol,
    tick_size: market.tickSize,
    lot_size: market.lotSize,
    min_order_value: formatUnits(minOrderUnits, market.quote.decimals),
    delisted,
  };
}
