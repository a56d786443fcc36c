import { isFilled } from '../../core/book/order-life.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { toCompactedOrder } from '../../ledger/orders/compacted-book.js';
import { groupBy } from '../../ledger/db/lists.js';
import { countRows, extremes, firstRow, readRows } from '../../ledger/db/rows.js';
import { VerifyError, same, type Verification } from './verification.js';
import type { Stored } from '../../ledger/db/tables.js';

/** What the check reads of a verification. */
type Checked = Pick<Verification, 'q' | 'compacted' | 'markets' | 'reversals' | 'onProgress'>;

const CHECK = 'folded orders';
const PAGE = 500;

/**
 * The compacted book against the fills: each of its orders is filled by as much as its fills up to its generation say, and
 * open only while a lot remains; each fill of an order that was compacted names one that is kept, at its price, or that compaction will restore.
 * The rest of the log begins right after it. Returns the number of orders.
 */
export async function verifyCompaction(verification: Checked): Promise<number> {
  const { q, compacted, markets, onProgress } = verification;
  const rest = await extremes(q, 'order_log', 'order_seq');
  if (rest !== null) same(CHECK, 'the first row of the order log', rest.least, compacted.orderSeq + 1);
  const total = await countRows(q, 'folded_orders');
  let done = 0;
  for (let after = 0; ;) {
    const rows = await readRows(q, 'folded_orders', { above: ['oid', after], orderBy: ['oid'], limit: PAGE });
    // Also the orders in between: one with a fill must not be missing.
    const to = rows.length < PAGE ? compacted.oid : rows.at(-1)!.oid;
    const parts = await readRows(q, 'order_fills', { between: ['oid', after + 1, to] });
    const partsOf = groupBy(parts, (part) => part.oid);
    for (const row of rows) {
      checkOrder(row, partsOf.get(row.oid) ?? [], compacted.generation);
      const { order, state } = toCompactedOrder(row);
      const isSpent = isFilled(order, markets[order.market]!.lotUnits);
      same(CHECK, `whether order ${row.oid} is filled`, state === 'filled', isSpent);
      partsOf.delete(row.oid);
    }
    for (const [missing, filling] of partsOf) {
      if (!(await isReadAgain(verification, filling)))
        throw new VerifyError(CHECK, `order ${missing} has a fill and was not kept`);
    }
    done += rows.length;
    onProgress({ check: CHECK, done, total });
    if (rows.length < PAGE) return done;
    after = to;
  }
}

/**
 * Whether all these fills are still to be compacted, and of blocks that were read before: an order had no fill then, and may have been forgotten.
 * Compaction restores it from the books of their curves.
 */
async function isReadAgain(
  { q, compacted, reversals }: Checked,
  parts: readonly Stored<'order_fills'>[],
): Promise<boolean> {
  for (const { generation, market, fill_seq } of parts) {
    const fill = await firstRow(q, 'fills', { where: { market, fill_seq } });
    const block = fill?.block_number ?? Number.MAX_SAFE_INTEGER;
    const isAgain = reversals.some((one) => one.generation < generation && block <= one.toBlock);
    if (generation <= compacted.generation || !isAgain) return false;
  }
  return true;
}

function checkOrder(row: Stored<'folded_orders'>, parts: readonly Stored<'order_fills'>[], generation: number): void {
  const filled = parts
    .filter((part) => part.generation <= generation)
    .reduce((sum, part) => sum + fromColumn(part.base_units), 0n);
  same(CHECK, `what filled order ${row.oid}`, fromColumn(row.filled_units), filled);
  for (const part of parts) {
    const stored = [row.maker, row.market, row.side, row.price_ticks];
    same(CHECK, `the order behind a fill of ${row.oid}`, stored, [
      part.maker,
      part.market,
      part.side,
      part.price_ticks,
    ]);
  }
}
