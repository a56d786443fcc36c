import type { Knex } from 'knex';
import { nameMarkets } from '../core/token-names.js';
import type { Address, Hex, Market } from '../core/types.js';
import { fromColumn, insertAll, toColumn } from './columns.js';
import { sendForRows } from './dialects.js';
import type { Queryable } from './types.js';

interface MarketRow {
  market: number;
  id: string;
  pair: string;
  base_symbol: string;
  base_address: string;
  base_decimals: number;
  quote_symbol: string;
  quote_address: string;
  quote_decimals: number;
  lot_units: string;
  tick_lot_units: string;
  max_ttl_sec: number;
  tick_size: string;
  lot_size: string;
  generation: number;
}

/** All markets that were ever listed, by index, with names that are unique, whatever was stored. */
export async function readMarkets(q: Queryable): Promise<Market[]> {
  const rows = await sendForRows<MarketRow>(q, 'select * from markets order by market');
  const stored = rows.map((row): Market => ({
    index: row.market,
    id: row.id as Hex,
    pair: row.pair,
    base: { symbol: row.base_symbol, address: row.base_address as Address, decimals: row.base_decimals },
    quote: { symbol: row.quote_symbol, address: row.quote_address as Address, decimals: row.quote_decimals },
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
): Promise<void> {
  const rows = listed.map((market): MarketRow => ({
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
  }));
  await insertAll(tx, 'markets', rows);
}
