import type { Address } from '../../core/types.js';
import { fromColumn } from '../../ledger/columns.js';
import { readAttributedFill, type FillRow } from '../../ledger/fills.js';
import { groupBy } from '../../ledger/group.js';
import { accountKey, fillRef } from '../../ledger/invariants.js';
import { baseRef, isReversedRef, reversedRef } from '../../ledger/refs.js';
import { readTakerFees } from '../../ledger/claims.js';
import { readBalances } from '../../ledger/balances.js';
import { UNATTRIBUTED, VAULT, type Account, type LedgerEntry } from '../../ledger/types.js';
import { depositEntries, executionEntries, fillEntries } from '../watcher/postings.js';
import { servedFrom } from './served.js';
import { VerifyError, same, type Verification } from './verify.js';

const CHECK = 'postings';
/** Generations read at a time. */
const PAGE = 500;

interface StoredEntry {
  ref: string;
  line: number;
  generation: number;
  kind: LedgerEntry['kind'];
  account: Account;
  token: Address;
  amount_units: string;
}

interface StoredCustody {
  kind: 'deposited' | 'executed';
  maker: Address;
  token: Address;
  amount_units: string;
  tx_hash: string;
  log_index: number;
}

interface StoredOrder {
  owner: string;
  nonce: string;
  token_in: Address;
  fee_units: string;
  fee_in_swap: number;
}

/** What the postings of a page of generations should be, by ref. */
type Expected = Map<string, LedgerEntry[]>;

/**
 * Derives the postings of every event and fill that stands, sums all postings up, and compares the sums with the balances. A posting
 * that was taken back is answered by its exact opposite; what reached the vault without an event is nobody's.
 */
export async function verifyEntries(verification: Verification): Promise<{ postings: number; balances: number }> {
  const { q, head, onProgress } = verification;
  const reversed = await reversedRefs(verification);
  const balances = new Map<string, bigint>();
  const fees = new Map<string, bigint>();
  let postings = 0;
  for (let from = 1; from <= head.generation; from += PAGE) {
    const to = Math.min(from + PAGE - 1, head.generation);
    const rows = (await q('entries')
      .whereBetween('generation', [from, to])
      .orderBy(['generation', 'ref', 'line'])
      .select()) as StoredEntry[];
    const expected = await expectedEntries(verification, { from, to });
    for (const [ref, lines] of groupBy(rows, (row) => row.ref)) {
      postings += 1;
      checkBalanced(ref, lines);
      if (isReversedRef(ref)) await checkReversal(verification, ref, lines);
      else if (!reversed.has(ref)) checkPosting(ref, lines, expected);
      for (const { kind, account, token, amount_units: units } of lines) {
        add(balances, accountKey({ account, token }), fromColumn(units));
        if (kind === 'takerFee') add(fees, accountKey({ account, token }), fromColumn(units));
      }
    }
    const [missing] = expected.keys();
    if (missing !== undefined) throw new VerifyError(CHECK, `${missing} was never booked`);
    onProgress({ check: CHECK, done: to, total: head.generation });
  }
  await checkFees(verification, fees);
  return { postings, balances: await checkBalances(verification, balances) };
}

function add(sums: Map<string, bigint>, key: string, units: bigint): void {
  sums.set(key, (sums.get(key) ?? 0n) + units);
}

async function reversedRefs({ q }: Verification): Promise<Set<string>> {
  const rows = await q('entries').where('ref', 'like', 'reversed:%').distinct<{ ref: string }[]>('ref');
  return new Set(rows.map(({ ref }) => ref.slice(reversedRef('').length)));
}

/** Lines of a posting in one order, whatever they were stored in. */
function canonical(lines: readonly Pick<StoredEntry, 'kind' | 'account' | 'token' | 'amount_units'>[]): string[] {
  return lines.map(({ kind, account, token, amount_units: units }) => `${kind} ${account} ${token} ${units}`).sort();
}

const toStored = ({ kind, account, token, amountUnits }: LedgerEntry) => ({
  kind,
  account,
  token,
  amount_units: amountUnits.toString(),
});

function checkBalanced(ref: string, lines: readonly StoredEntry[]): void {
  const sums = new Map<string, bigint>();
  for (const { token, amount_units: units } of lines) add(sums, token, fromColumn(units));
  for (const [token, sum] of sums) same(CHECK, `the sum of ${ref} in ${token}`, sum, 0n);
}

async function checkReversal({ q }: Verification, ref: string, lines: readonly StoredEntry[]): Promise<void> {
  const of = ref.slice(reversedRef('').length);
  const original = (await q('entries').where({ ref: of }).select()) as StoredEntry[];
  const opposite = original.map((line) => ({ ...line, amount_units: (-fromColumn(line.amount_units)).toString() }));
  same(CHECK, ref, canonical(lines), canonical(opposite));
}

function checkPosting(ref: string, lines: readonly StoredEntry[], expected: Expected): void {
  const name = baseRef(ref);
  if (name.startsWith('surplus:')) return checkSurplus(ref, lines);
  const derived = expected.get(name);
  if (derived === undefined) throw new VerifyError(CHECK, `${ref} is booked and nothing that stands explains it`);
  expected.delete(name);
  same(CHECK, ref, canonical(lines), canonical(derived.map(toStored)));
}

/** Only the chain says how much it was; it may never come out of anybody's row, nor go into one. */
function checkSurplus(ref: string, lines: readonly StoredEntry[]): void {
  const [first] = lines;
  const units = first === undefined ? 0n : fromColumn(first.amount_units);
  const amount = units < 0n ? -units : units;
  const kind = 'unattributed' as const;
  const token = first?.token ?? '0x';
  const derived = [
    { kind, account: UNATTRIBUTED, token, amountUnits: amount, ref },
    { kind, account: VAULT, token, amountUnits: -amount, ref },
  ] satisfies LedgerEntry[];
  same(CHECK, ref, canonical(lines), canonical(derived.map(toStored)));
}

async function expectedEntries(verification: Verification, span: { from: number; to: number }): Promise<Expected> {
  const { q, markets, operator } = verification;
  const expected: Expected = new Map();
  const within = [span.from, span.to] as const;
  for (const row of (await q('fills').whereBetween('generation', within).select()) as FillRow[]) {
    const market = markets[row.market]!;
    const { fill, decomposition } = await readAttributedFill(q, row);
    expected.set(fillRef(market, fill.fillSeq), fillEntries(market, fill, decomposition, operator));
  }
  const served = await servedFrom(verification);
  const custody = (await q('custody_events')
    .whereBetween('generation', within)
    .whereIn('kind', ['deposited', 'executed'])
    .select()) as (StoredCustody & { generation: number })[];
  for (const event of custody) {
    const ref = `${event.kind}:${event.tx_hash}:${event.log_index}`;
    if (!(await isBooked(verification, served, event, ref))) continue;
    const make = event.kind === 'deposited' ? depositEntries : executionEntries;
    expected.set(ref, make(ref, event.maker, event.token, fromColumn(event.amount_units)));
  }
  const orders = (await q('settled_orders').whereBetween('generation', within).select()) as (StoredOrder & {
    generation: number;
  })[];
  for (const order of orders) {
    const ref = `order:${order.owner}:${order.nonce}`;
    const amountUnits = fromColumn(order.fee_units);
    if (order.fee_in_swap !== 0 || amountUnits === 0n) continue;
    const event = { token: order.token_in, generation: order.generation };
    if (!(await isBooked(verification, served, event, ref))) continue;
    const token = order.token_in;
    expected.set(ref, [
      { ref, kind: 'inputFee', account: operator, token, amountUnits },
      { ref, kind: 'inputFee', account: VAULT, token, amountUnits: -amountUnits },
    ]);
  }
  return expected;
}

/** Tokens count from their listing on. Within the generation of the listing only the chain says which came first. */
async function isBooked(
  { q }: Verification,
  served: ReadonlyMap<Address, number>,
  event: { token: Address; generation: number },
  ref: string,
): Promise<boolean> {
  const from = served.get(event.token);
  if (from === undefined || event.generation < from) return false;
  if (event.generation > from) return true;
  return (await q('entries').where({ ref }).first('ref')) !== undefined;
}

async function checkBalances({ q, operator }: Verification, derived: Map<string, bigint>): Promise<number> {
  const rows = await readBalances(q);
  for (const row of rows) {
    const key = accountKey(row);
    same(CHECK, `the balance of ${row.account} in ${row.token}`, row.balanceUnits, derived.get(key) ?? 0n);
    derived.delete(key);
    const mayBeNegative = row.account === operator || !row.account.startsWith('0x');
    if (row.balanceUnits < 0n && !mayBeNegative)
      throw new VerifyError(CHECK, `${row.account} has ${row.balanceUnits} units of ${row.token}`);
  }
  for (const [key, units] of derived) same(CHECK, `the balance ${key}`, 0n, units);
  return rows.length;
}

async function checkFees({ q }: Verification, derived: Map<string, bigint>): Promise<void> {
  for (const { taker, token, accruedUnits } of await readTakerFees(q)) {
    const key = accountKey({ account: taker, token });
    same(CHECK, `the fees of ${taker} in ${token}`, accruedUnits, derived.get(key) ?? 0n);
    derived.delete(key);
  }
  for (const [key, units] of derived) same(CHECK, `the fees ${key}`, 0n, units);
}
