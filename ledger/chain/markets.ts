import { z } from 'zod';
import type { Knex } from 'knex';
import { nameMarkets } from '../../core/token-names.js';
import type { Address, Market } from '../../core/types.js';
import { fromColumn, insertAll, toColumn } from '../db/columns.js';
import { sendForRows } from '../db/dialects.js';
import type { ListingRead, Queryable, SaidOfToken } from '../types.js';
import type { Stored } from '../db/tables.js';

/** All markets that were ever listed, by index, with unique names, whatever symbols are stored. */
export async function readMarkets(q: Queryable): Promise<Market[]> {
  const rows = await sendForRows<Stored<'markets'>>(q, 'select * from markets order by market');
  const stored = rows.map((row): Market => ({
    index: row.market,
    id: row.id,
    pair: row.pair,
    base: { symbol: row.base_symbol, address: row.base_address, decimals: row.base_decimals },
    quote: { symbol: row.quote_symbol, address: row.quote_address, decimals: row.quote_decimals },
    lotUnits: fromColumn(row.lot_units),
    tickLotUnits: fromColumn(row.tick_lot_units),
    maxTtlSec: row.max_ttl_sec,
    tickSize: row.tick_size,
    lotSize: row.lot_size,
  }));
  return nameMarkets(stored);
}

/** Stores the markets that a generation listed. */
export async function insertMarkets(
  tx: Knex.Transaction,
  listed: readonly Market[],
  generation: number,
  listings: readonly ListingRead[] = [],
): Promise<void> {
  const saidOf = new Map(listings.map((one) => [one.market, one]));
  const text = (said: SaidOfToken | undefined): string | null => (said === undefined ? null : JSON.stringify(said));
  const rows = listed.map((market): Stored<'markets'> => ({
    market: market.index,
    id: market.id,
    pair: market.pair,
    base_symbol: market.base.symbol,
    base_address: market.base.address,
    base_decimals: market.base.decimals,
    quote_symbol: market.quote.symbol,
    quote_address: market.quote.address,
    quote_decimals: market.quote.decimals,
    lot_units: toColumn(market.lotUnits),
    tick_lot_units: toColumn(market.tickLotUnits),
    max_ttl_sec: market.maxTtlSec,
    tick_size: market.tickSize,
    lot_size: market.lotSize,
    generation,
    base_said: text(saidOf.get(market.index)?.base),
    quote_said: text(saidOf.get(market.index)?.quote),
    read_block: saidOf.get(market.index)?.readBlock ?? null,
  }));
  await insertAll(tx, 'markets', rows);
}

/** A token's metadata when its first market was listed, and the block of that reading; nulls where it was not stored. */
export interface TokenListing {
  token: Address;
  said: SaidOfToken | null;
  readBlock: number | null;
}

const saidSchema = z.object({ symbol: z.string(), decimals: z.number().nullable() });

/** What a token said, as it was stored. Throws SyntaxError or ZodError on anything else. */
export const readSaid = (text: string): SaidOfToken => saidSchema.parse(JSON.parse(text));

/** Every token that a market trades, in the order of listing. */
export async function readTokenListings(q: Queryable): Promise<TokenListing[]> {
  const rows = await sendForRows<Stored<'markets'>>(q, 'select * from markets order by market');
  const tokens = new Map<string, TokenListing>();
  for (const row of rows) {
    for (const [token, said] of [
      [row.base_address, row.base_said],
      [row.quote_address, row.quote_said],
    ] as const) {
      if (tokens.has(token)) continue;
      tokens.set(token, {
        token: token,
        said: said === null ? null : readSaid(said),
        readBlock: row.read_block,
      });
    }
  }
  return [...tokens.values()];
}
