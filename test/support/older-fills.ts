/** Fills as databases before migration 0042 hold them: with rows of their postings and legs. */
import { toColumn } from '../../ledger/db/columns.js';
import { readAttributedFill } from '../../ledger/chain/fills.js';
import { storeDerivedEntries } from '../../ledger/chain/fill-postings.js';
import type { Db } from '../../ledger/types.js';

/** Gives the fills with these numbers the rows that they had then; all without any. */
export async function storeAsOlder(db: Db, fillSeqs?: readonly number[]): Promise<void> {
  await db.knex.transaction(async (tx) => {
    const rows = await tx('fills').whereNotNull('booked_by').select();
    const others = rows.filter((row) => !(fillSeqs?.includes(row.fill_seq) ?? true));
    const of = ({ market, fill_seq }: { market: number; fill_seq: number }) => ({ market, fill_seq });
    for (const row of rows.filter((one) => !others.includes(one))) {
      const { decomposition } = await readAttributedFill(tx, row);
      for (const [legNo, leg] of decomposition.legs.entries()) {
        await tx('fill_legs').insert({
          ...of(row),
          leg_no: legNo,
          maker: leg.maker,
          price_ticks: toColumn(leg.priceTicks),
          base_units: toColumn(leg.baseUnits),
          quote_units: toColumn(leg.quoteUnits),
        });
      }
    }
    for (const row of others) await tx('fills').where(of(row)).update({ booked_by: null });
    await storeDerivedEntries(tx, 0);
    await tx('fills').update({ booked_by: null });
    for (const row of others) await tx('fills').where(of(row)).update({ booked_by: row.booked_by });
  });
}
