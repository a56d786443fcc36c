import { nameItem, readSuspense, type SuspenseRow } from '../../ledger/chain/suspense.js';
import { readAttributedFill } from '../../ledger/chain/fills.js';
import { fillItem } from '../watcher/derive/suspense.js';
import { firstRow } from '../../ledger/db/rows.js';
import { readCustodyEvent } from '../../ledger/chain/claims.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'suspense';

/**
 * Checks that every item belongs to a live fill, curve, settlement or payout with the same values, and that its assignment is that of an
 * act of the operator. Their postings are checked in `entries.ts`. Returns the number of items, and how many wait for the operator.
 */
export async function verifySuspense(verification: Verification): Promise<{ items: number; open: number }> {
  const rows = await readSuspense(verification.q, { open: false });
  for (const row of rows) {
    const { item, message: _message, blockNumber: _block, generation, assignment, ...told } = row;
    same(CHECK, `the name of item ${item}`, item, nameItem(told));
    const found =
      row.kind === 'fill'
        ? await ofFill(verification, row)
        : row.kind === 'curve'
          ? await ofCurve(verification, row)
          : await ofCustody(verification, row);
    same(CHECK, `the ${row.kind} of item ${item}`, [generation, row.blockNumber], found);
    if (assignment === null) continue;
    const act = await firstRow(verification.q, 'operator_log', { where: { operator_seq: assignment.operatorSeq } });
    const decided = [act?.kind, act?.item, act?.maker];
    same(CHECK, `what the operator decided of item ${item}`, decided, ['assign', item, assignment.account]);
  }
  return {
    items: rows.length,
    open: rows.filter(({ kind, assignment }) => assignment === null && kind !== 'curve').length,
  };
}

type Place = [generation: number, blockNumber: number];

async function ofFill({ q, markets, operator }: Verification, row: SuspenseRow): Promise<Place> {
  const where = { market: row.market ?? -1, fill_seq: row.seq ?? -1 };
  const stored = await firstRow(q, 'fills', { where });
  const market = markets[row.market ?? -1];
  if (stored === undefined || market === undefined) throw missing(row);
  const fill = await readAttributedFill(q, stored);
  const { code, message, item, units, otherUnits } = row;
  const derived = fillItem(market, { ...fill, suspended: { code, message } }, operator);
  same(CHECK, `item ${item}`, [item, units, otherUnits], [derived.item, derived.units, derived.otherUnits]);
  return [stored.generation, stored.block_number];
}

async function ofCurve({ q }: Verification, row: SuspenseRow): Promise<Place> {
  const where = { market: row.market ?? -1, seq: row.seq ?? -1, tx_hash: row.txHash };
  const seen = await firstRow(q, 'posts_seen', { where });
  if (seen === undefined) throw missing(row);
  return [seen.generation, seen.block_number];
}

async function ofCustody({ q }: Verification, row: SuspenseRow): Promise<Place> {
  const [kind] = row.ref.split(':');
  const stored = await readCustodyEvent(q, row.ref);
  if (stored === undefined) throw missing(row);
  const expected = [kind, row.maker, row.token];
  same(CHECK, `item ${row.item}`, [stored.kind, stored.maker, stored.token], expected);
  if (row.kind === 'settlement' && stored.settlement_no !== null)
    throw new VerifyError(CHECK, `item ${row.item} is of a settlement that was prepared here`);
  return [stored.generation, stored.block_number];
}

const missing = ({ kind, item }: SuspenseRow): VerifyError =>
  new VerifyError(CHECK, `item ${item} is of a ${kind} that nothing stored has`);
