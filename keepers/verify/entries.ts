import type { Address } from '../../core/types.js';
import { toSafeInt } from '../../core/amounts.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { readAttributedFill } from '../../ledger/chain/fills.js';
import { groupBy } from '../../ledger/db/lists.js';
import { accountKey, assignmentRef, fillRef } from '../../ledger/chain/invariants.js';
import { baseRef, isReversedRef, reversedRef } from '../../ledger/chain/refs.js';
import { readTakerFees } from '../../ledger/chain/claims.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { readAssigned, readSuspended } from '../../ledger/chain/suspense.js';
import { isAddress, UNATTRIBUTED, VAULT, type Account, type LedgerEntry, type Queryable } from '../../ledger/types.js';
import { fillEntries, readEntries } from '../../ledger/chain/fill-postings.js';
import { assignmentEntries, depositEntries, executionEntries } from '../watcher/derive/postings.js';
import { servedFrom } from './listings.js';
import { checkStarts, inBookingOrder, readStarts, startKey } from './starts.js';
import { firstRow, readRows } from '../../ledger/db/rows.js';
import { readLastChanges, readReversedAmong } from '../../ledger/views/audit.js';
import { checkUncovered } from './suspense.js';
import { VerifyError, same, type Verification } from './verification.js';
import type { Stored } from '../../ledger/db/tables.js';

const CHECK = 'postings';
/** Generations read at a time. */
const PAGE = 500;

/** What the postings of a page of generations should be, by ref. Fills come first, in the order of the chain. */
type Expected = Map<string, { generation: number; lines: LedgerEntry[] }>;

/**
 * Derives the postings of every event and fill that stands, sums all postings up, and compares the sums with the balances. A reversed
 * posting has its exact opposite; amounts that reached the vault without an event belong to no account.
 */
export async function verifyEntries(verification: Verification): Promise<{ postings: number; balances: number }> {
  const { q, head, onProgress } = verification;
  const sums: Sums = { balances: new Map(), fees: new Map(), changed: await lastChanges(q), charged: new Map() };
  let postings = 0;
  for (let from = 1; from <= head.generation; from += PAGE) {
    const to = Math.min(from + PAGE - 1, head.generation);
    const rows = await readEntries(q, { from, to });
    const reversed = await reversedAmong(verification, rows);
    const expected = await expectedEntries(verification, { from, to });
    const starts = await readStarts(q, { from, to });
    const items = groupBy([...(await readSuspended(q, { from, to })).values()].flat(), (row) => row.generation);
    const assigned = groupBy(await readAssigned(q, { from, to }), (row) => row.assignment!.generation);
    for (const [generation, ofGeneration] of groupBy(rows, (row) => row.generation)) {
      const booked = groupBy(ofGeneration, (row) => row.ref);
      for (const ref of inBookingOrder([...booked.keys()], [...expected.keys()])) {
        const lines = booked.get(ref)!;
        postings += 1;
        checkBalanced(ref, lines);
        checkStarts(starts.get(startKey(generation, ref)) ?? [], sums.balances);
        sumUp(sums, lines);
      }
      for (const [ref, lines] of booked) {
        if (isReversedRef(ref)) await checkReversal(verification, ref, lines);
        else if (!reversed.has(ref)) await checkPosting(verification, ref, lines, expected);
      }
      const inSuspense = { items: items.get(generation) ?? [], assigned: assigned.get(generation) ?? [] };
      checkUncovered(inSuspense, sums.balances);
    }
    const [missing] = expected.keys();
    if (missing !== undefined) throw new VerifyError(CHECK, `${missing} was never booked`);
    onProgress({ check: CHECK, done: to, total: head.generation });
  }
  await checkFees(verification, sums);
  return { postings, balances: await checkBalances(verification, sums) };
}

/** Everything that was posted so far, by account and token. */
interface Sums {
  balances: Map<string, bigint>;
  fees: Map<string, bigint>;
  /** Newest generation that changed a row, or charged a fee. */
  changed: Map<string, number>;
  charged: Map<string, number>;
}

function sumUp({ balances, fees, changed, charged }: Sums, lines: readonly Stored<'entries'>[]): void {
  for (const { kind, account, token, amount_units: units, generation } of lines) {
    const key = accountKey({ account, token });
    add(balances, key, fromColumn(units));
    changed.set(key, Math.max(changed.get(key) ?? 0, generation));
    if (kind !== 'takerFee') continue;
    add(fees, key, fromColumn(units));
    charged.set(key, generation);
  }
}

/** Newest generation in which the counters that postings do not explain changed, by account and token. */
async function lastChanges(q: Queryable): Promise<Map<string, number>> {
  const rows = await readLastChanges(q);
  return new Map(rows.map((row) => [accountKey(row), row.last]));
}

function add(sums: Map<string, bigint>, key: string, units: bigint): void {
  sums.set(key, (sums.get(key) ?? 0n) + units);
}

async function reversedAmong(
  { q, reversals }: Verification,
  rows: readonly Stored<'entries'>[],
): Promise<ReadonlySet<string>> {
  return reversals.length === 0 ? new Set() : readReversedAmong(q, [...new Set(rows.map(({ ref }) => ref))]);
}

/** Lines of a posting in one order, whatever they were stored in. */
function canonical(lines: readonly Pick<Stored<'entries'>, 'kind' | 'account' | 'token' | 'amount_units'>[]): string[] {
  return lines.map(({ kind, account, token, amount_units: units }) => `${kind} ${account} ${token} ${units}`).sort();
}

const toStored = ({ kind, account, token, amountUnits }: LedgerEntry) => ({
  kind,
  account,
  token,
  amount_units: amountUnits.toString(),
});

function checkBalanced(ref: string, lines: readonly Stored<'entries'>[]): void {
  const sums = new Map<string, bigint>();
  for (const { token, amount_units: units } of lines) add(sums, token, fromColumn(units));
  for (const [token, sum] of sums) same(CHECK, `the sum of ${ref} in ${token}`, sum, 0n);
}

async function checkReversal(
  { q, reversals }: Verification,
  ref: string,
  lines: readonly Stored<'entries'>[],
): Promise<void> {
  const of = ref.slice(reversedRef('').length);
  const original = await readRows(q, 'entries', { where: { ref: of } });
  const opposite = original.map((line) => ({ ...line, amount_units: (-fromColumn(line.amount_units)).toString() }));
  same(CHECK, ref, canonical(lines), canonical(opposite));
  const generation = generationOf(ref, lines);
  const by = reversals.find((one) => one.generation === generation);
  const from = original[0]?.generation ?? 0;
  if (by === undefined || from <= by.keptGeneration || from >= generation)
    throw new VerifyError(CHECK, `${ref} is of generation ${generation}, which did not take generation ${from} back`);
}

/** All lines of a posting belong to one generation, and are numbered. */
function generationOf(ref: string, lines: readonly Stored<'entries'>[]): number {
  const generation = lines[0]!.generation;
  same(
    CHECK,
    `the lines of ${ref}`,
    lines.map((line) => [line.line, line.generation]),
    lines.map((_line, i) => [i, generation]),
  );
  return generation;
}

async function checkPosting(
  verification: Verification,
  ref: string,
  lines: readonly Stored<'entries'>[],
  expected: Expected,
): Promise<void> {
  const name = baseRef(ref);
  const generation = generationOf(ref, lines);
  if (/^surplus(-back)?:/.test(name)) return checkSurplus(verification, ref, lines, generation);
  const derived = expected.get(name);
  if (derived === undefined) throw new VerifyError(CHECK, `${ref} is booked and nothing that stands explains it`);
  expected.delete(name);
  same(CHECK, ref, canonical(lines), canonical(derived.lines.map(toStored)));
  same(CHECK, `the generation of ${ref}`, generation, derived.generation);
}

/** Only the chain shows a surplus's amount, and whether it has left again; it must never be booked from or to an account. */
async function checkSurplus(
  { q }: Verification,
  ref: string,
  lines: readonly Stored<'entries'>[],
  generation: number,
): Promise<void> {
  const [first] = lines;
  const units = first === undefined ? 0n : fromColumn(first.amount_units);
  const size = units < 0n ? -units : units;
  const amount = ref.startsWith('surplus-back:') ? -size : size;
  const kind = 'unattributed' as const;
  const token = first?.token ?? '0x';
  const derived = [
    { kind, account: UNATTRIBUTED, token, amountUnits: amount, ref },
    { kind, account: VAULT, token, amountUnits: -amount, ref },
  ] satisfies LedgerEntry[];
  same(CHECK, ref, canonical(lines), canonical(derived.map(toStored)));
  const number = toSafeInt(BigInt(baseRef(ref).split(':').at(-1) ?? ''));
  const block = await firstRow(q, 'blocks', { where: { number } });
  same(CHECK, `the generation of ${ref}`, generation, block?.generation);
}

async function expectedEntries(verification: Verification, span: { from: number; to: number }): Promise<Expected> {
  const { q, markets, operator } = verification;
  const expected: Expected = new Map();
  const suspended = await readSuspended(q, span);
  const between: ['generation', number, number] = ['generation', span.from, span.to];
  const fills = await readRows(q, 'fills', { between, orderBy: ['generation', 'block_number', 'log_index'] });
  for (const row of fills) {
    const market = markets[row.market]!;
    if (row.booked_by !== null)
      same(CHECK, `for whom fill ${row.fill_seq} of ${market.pair} is booked`, row.booked_by, operator);
    const { fill, decomposition } = await readAttributedFill(q, row);
    const ref = fillRef(market, fill.fillSeq);
    const makers = (suspended.get(ref) ?? []).map(({ maker }) => maker);
    const lines = fillEntries(market, fill, decomposition, operator, {
      isSuspended: makers.includes(null),
      uncovered: makers.filter((maker) => maker !== null),
    });
    expected.set(ref, { generation: row.generation, lines });
  }
  const served = await servedFrom(verification);
  const custody = await readRows(q, 'custody_events', { between });
  for (const event of custody) {
    if (event.kind !== 'deposited' && event.kind !== 'executed') continue;
    const ref = `${event.kind}:${event.tx_hash}:${event.log_index}`;
    if (!(await isBooked(verification, served, event, ref))) continue;
    const units = fromColumn(event.amount_units);
    const lines =
      event.kind === 'deposited'
        ? depositEntries(ref, event.maker, event.token, units)
        : executionEntries(ref, event.maker, event.token, units, -(suspended.get(ref)?.[0]?.units ?? 0n));
    expected.set(ref, { generation: event.generation, lines });
  }
  for (const order of await readRows(q, 'settled_orders', { between })) {
    const ref = `order:${order.owner}:${order.nonce}`;
    const amountUnits = fromColumn(order.fee_units);
    if (order.fee_in_swap !== 0 || amountUnits === 0n) continue;
    const event = { token: order.token_in, generation: order.generation };
    if (!(await isBooked(verification, served, event, ref))) continue;
    const token = order.token_in;
    const lines: LedgerEntry[] = [
      { ref, kind: 'inputFee', account: operator, token, amountUnits },
      { ref, kind: 'inputFee', account: VAULT, token, amountUnits: -amountUnits },
    ];
    expected.set(ref, { generation: order.generation, lines });
  }
  for (const row of await readAssigned(q, span)) {
    const { account, generation } = row.assignment!;
    const lines = assignmentEntries(row, account);
    // Assigning a settlement to the operator moves no amount.
    if (lines.length > 0) expected.set(assignmentRef(row.item), { generation, lines });
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
  return (await firstRow(q, 'entries', { where: { ref } })) !== undefined;
}

async function checkBalances({ q, operator }: Verification, { balances, changed }: Sums): Promise<number> {
  const rows = await readBalances(q);
  for (const row of rows) {
    const key = accountKey(row);
    same(CHECK, `the balance of ${row.account} in ${row.token}`, row.balanceUnits, balances.get(key) ?? 0n);
    balances.delete(key);
    const mayBeNegative = row.account === operator || !isAddress(row.account);
    if (row.balanceUnits < 0n && !mayBeNegative)
      throw new VerifyError(CHECK, `${row.account} has ${row.balanceUnits} units of ${row.token}`);
  }
  for (const [key, units] of balances) same(CHECK, `the balance ${key}`, 0n, units);
  checkNewest('balances', await readRows(q, 'balances'), changed);
  return rows.length;
}

async function checkFees({ q }: Verification, { fees, charged }: Sums): Promise<void> {
  for (const { taker, token, accruedUnits } of await readTakerFees(q)) {
    const key = accountKey({ account: taker, token });
    same(CHECK, `the fees of ${taker} in ${token}`, accruedUnits, fees.get(key) ?? 0n);
    fees.delete(key);
  }
  for (const [key, units] of fees) same(CHECK, `the fees ${key}`, 0n, units);
  const charges = (await readRows(q, 'taker_fees')).map(({ taker, ...row }) => ({ ...row, account: taker }));
  checkNewest('taker_fees', charges, charged);
}

/** A row names the last generation that changed it: checkpoints are cut from what changed since. */
function checkNewest(
  table: string,
  rows: readonly { account: Account; token: Address; generation: number }[],
  newest: ReadonlyMap<string, number>,
): void {
  for (const row of rows) {
    const name = `the generation of ${row.account} in ${row.token}, in ${table}`;
    same(CHECK, name, row.generation, newest.get(accountKey(row)));
  }
}
