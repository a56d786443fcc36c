import type { Address } from '../../core/types.js';
import { accountKey } from '../../ledger/chain/invariants.js';
import { nameItem, readSuspense, type SuspenseRow } from '../../ledger/chain/suspense.js';
import { readAttributedFill } from '../../ledger/chain/fills.js';
import { fillItem, sideItem } from '../watcher/derive/suspense.js';
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
  same(CHECK, `whether item ${item} is of one maker`, row.maker !== null, code === 'uncovered_fill');
  const derived =
    row.maker === null
      ? fillItem(market, { ...fill, suspended: { code, message } }, operator)
      : sideItem(market, fill, row.maker);
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

/**
 * Checks that a generation put no maker's side of a fill in suspense that the maker's row could bear: with all that was suspended of it, and
 * without what was assigned to it in the same generation, one of its rows would be below zero. `balances` are those after the generation, by
 * `accountKey`.
 */
export function checkUncovered(
  { items, assigned }: Record<'items' | 'assigned', readonly SuspenseRow[]>,
  balances: ReadonlyMap<string, bigint>,
): void {
  const ofMakers = items.filter(({ kind, maker }) => maker !== null && (kind === 'fill' || kind === 'execution'));
  for (const { item, kind, maker } of ofMakers) {
    if (kind !== 'fill' || maker === null) continue;
    const suspended = ofMakers.filter((one) => one.maker === maker);
    const credited = assigned.filter(({ assignment }) => assignment?.account === maker);
    const isLacking = suspended
      .flatMap((one) => [one.token, one.otherToken])
      .some((of) => {
        if (of === null) return false;
        const before = balances.get(accountKey({ account: maker, token: of })) ?? 0n;
        return before + unitsIn(suspended, of) - unitsIn(credited, of) < 0n;
      });
    if (!isLacking) throw new VerifyError(CHECK, `item ${item} is of a side of a fill that ${maker} could bear`);
  }
}

/** What items add in a token. */
const unitsIn = (items: readonly SuspenseRow[], of: Address): bigint =>
  items.reduce(
    (sum, { token, units, otherToken, otherUnits }) =>
      sum + (token === of ? units : 0n) + (otherToken === of ? otherUnits : 0n),
    0n,
  );

const missing = ({ kind, item }: SuspenseRow): VerifyError =>
  new VerifyError(CHECK, `item ${item} is of a ${kind} that nothing stored has`);
