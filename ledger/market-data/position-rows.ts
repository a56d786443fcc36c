/** Rows of positions by maker and market: a projection of order fills. */
import type { Knex } from 'knex';
import type { Position } from '../../core/market-data/positions.js';
import type { Address } from '../../core/types.js';
import { chunks, fromColumn, toColumn, upsertAll } from '../db/columns.js';
import { placeholders, sendForRows } from '../db/dialects.js';
import type { Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** The position of one maker in one market. */
export interface MakerPosition extends Position {
  maker: Address;
  market: number;
  /** Parts of fills, one for each order that was hit. */
  parts: number;
}

export const positionKey = ({ maker, market }: Pick<MakerPosition, 'maker' | 'market'>): string => `${maker}:${market}`;

/** Positions of these makers in every market that they had a fill in. */
export async function readPositionsOf(q: Queryable, makers: readonly Address[]): Promise<MakerPosition[]> {
  const found: MakerPosition[] = [];
  for (const part of chunks(makers)) {
    const sql = `select * from maker_positions where maker in (${placeholders(part.length)}) order by maker, market`;
    for (const row of await sendForRows<Stored<'maker_positions'>>(q, sql, part)) found.push(fromRow(row));
  }
  return found;
}

/** Positions of all makers in a market, by address, without those that have no fill left. */
export async function readPositionsIn(q: Queryable, market: number): Promise<MakerPosition[]> {
  const sql = 'select * from maker_positions where market = ? and parts > 0 order by maker';
  return (await sendForRows<Stored<'maker_positions'>>(q, sql, [market])).map(fromRow);
}

/** Writes positions as they are after a generation. One without a fill keeps a row of zeros. */
export async function storePositions(
  tx: Knex.Transaction,
  generation: number,
  positions: readonly MakerPosition[],
): Promise<void> {
  const rows = positions.map((one): Stored<'maker_positions'> => ({
    maker: one.maker,
    market: one.market,
    parts: one.parts,
    bought_base_units: toColumn(one.boughtBaseUnits),
    bought_quote_units: toColumn(one.boughtQuoteUnits),
    sold_base_units: toColumn(one.soldBaseUnits),
    sold_quote_units: toColumn(one.soldQuoteUnits),
    realised_units: toColumn(one.realisedUnits),
    generation,
  }));
  await upsertAll(tx, 'maker_positions', ['maker', 'market'], rows);
}

function fromRow(row: Stored<'maker_positions'>): MakerPosition {
  return {
    maker: row.maker,
    market: row.market,
    parts: row.parts,
    boughtBaseUnits: fromColumn(row.bought_base_units),
    boughtQuoteUnits: fromColumn(row.bought_quote_units),
    soldBaseUnits: fromColumn(row.sold_base_units),
    soldQuoteUnits: fromColumn(row.sold_quote_units),
    realisedUnits: fromColumn(row.realised_units),
  };
}
