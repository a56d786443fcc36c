/** Takes the compacted book back to before generations that were reversed. */
import type { Knex } from 'knex';
import { isFilled } from '../../core/book/order-life.js';
import type { Market } from '../../core/types.js';
import { lastShared } from '../chain/branches.js';
import { lastGeneration } from '../chain/generations.js';
import { readOrphanedRows, readReversals } from '../chain/reversals.js';
import { chunks, fromColumn, toColumn, upsertAll } from '../db/columns.js';
import { groupBy } from '../db/lists.js';
import type { Stored } from '../db/tables.js';
import { waitForWriter } from '../db/writers.js';
import { readCompactionPosition, toCompactedOrder } from './compacted-book.js';

/**
 * After a reversal, inside its transaction or a later one: the compacted book counts no fill of a generation that is not live any more, and
 * ends at the newest live one that it had, so that fills that are read again are applied to it as any others. `markets` are those of its
 * orders. Changes nothing where no reversal reaches what was compacted.
 *
 * An order that reversed fills had filled is closed afterwards, because whether its maker had closed it, too, went with the rows of the log: it
 * is filled again by fills that come again, and is never offered against the maker's will. So cuts from before the generation that the book
 * had reached, in which that order may have been open, can't be rebuilt from it (`cutGeneration`).
 */
export async function rewindCompactedBook(tx: Knex.Transaction, markets: readonly Market[]): Promise<void> {
  // The order log's writer compacts what it sees as live.
  await waitForWriter(tx, 'order');
  const at = await readCompactionPosition(tx);
  // Nothing was compacted.
  if (at.orderSeq === 0 && at.generation === 0) return;
  const head = (await lastGeneration(tx))?.generation ?? 0;
  const kept = lastShared(await readReversals(tx), at.generation, head);
  // Fills after the compacted generation have not been counted, but may come again: until then their orders must not be forgotten.
  const reversed = await readOrphanedRows(tx, 'order_fills', { from: kept + 1, to: head });
  for (const oids of chunks([...new Set(reversed.map(({ oid }) => oid))])) {
    const rows = await tx('folded_orders').whereIn('oid', oids).select();
    const partsOf = groupBy(
      await tx('order_fills').whereIn('oid', oids).where('generation', '<=', kept).select('oid', 'base_units'),
      ({ oid }) => oid,
    );
    const next = rows.map((row) => {
      const units = (partsOf.get(row.oid) ?? []).reduce((sum, part) => sum + fromColumn(part.base_units), 0n);
      return withFilled(row, units, markets);
    });
    await upsertAll(tx, 'folded_orders', ['oid'], next);
  }
  if (kept < at.generation) await tx('fold_position').where({ id: 1 }).update({ generation: kept });
}

function withFilled(
  row: Stored<'folded_orders'>,
  filledUnits: bigint,
  markets: readonly Market[],
): Stored<'folded_orders'> {
  const next = { ...row, has_fill: 1, filled_units: toColumn(filledUnits) };
  const { order, state } = toCompactedOrder(next);
  const lotUnits = markets[order.market]?.lotUnits ?? 1n;
  return state === 'filled' && !isFilled(order, lotUnits) ? { ...next, state: 'canceled' } : next;
}
