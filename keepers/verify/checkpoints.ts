import { minBig } from '../../core/amounts.js';
import { settlementUnits } from '../../core/claim-state.js';
import type { Address } from '../../core/types.js';
import { isTakenBack } from '../../ledger/chain/branches.js';
import { newestWithin } from '../../ledger/chain/reversals.js';
import { nextCheckpointSeq, readArchivedCheckpoint } from '../../ledger/settlements/archived-checkpoint.js';
import { readChangedRows, readCheckpoints, rowKey } from '../../ledger/settlements/checkpoint-log.js';
import { createCheckpointState } from '../../ledger/settlements/checkpoint-state.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { readGeneration } from '../../ledger/chain/generations.js';
import { readEntries } from '../../ledger/chain/fill-postings.js';
import { isReversedRef, reversedRef } from '../../ledger/chain/refs.js';
import { isAddress, type CheckpointHead, type CheckpointRow } from '../../ledger/types.js';
import { countRows, extremes, firstRow, readRows } from '../../ledger/db/rows.js';
import { claimUpTo, readEnds, readFillRefs } from '../../ledger/views/audit.js';
import type { Stored } from '../../ledger/db/tables.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'checkpoints';
const PAGE = 500;

/** Balances by summing up the postings so far. */
type Sums = Map<string, CheckpointRow>;

/**
 * Derives every checkpoint from the postings up to its generation: its rows, its root, the fills in it, the block that it names, and the
 * settlements that were computed from it. Since reversals are posted with the opposite sign, the sum up to a generation is the state at
 * that generation. Returns their number.
 */
export async function verifyCheckpoints(verification: Verification): Promise<number> {
  const { q, onProgress } = verification;
  const total = await countRows(q, 'checkpoints');
  const sums: Sums = new Map();
  const fills = new Map<string, number>();
  const state = createCheckpointState();
  const archived = await readArchivedCheckpoint(q);
  let generation = 0;
  let done = 0;
  let last = 0;
  for (;;) {
    const heads = await readCheckpoints(q, { after: last, limit: PAGE });
    for (const head of heads) {
      const name = `checkpoint ${head.checkpointSeq}`;
      // At most once numbers may jump, to continue above those of a lost database.
      const isRestored = head.checkpointSeq === nextCheckpointSeq(last, archived);
      if (!isRestored) same(CHECK, 'the number of a checkpoint', head.checkpointSeq, last + 1);
      last = head.checkpointSeq;
      const row = await readGeneration(q, head.generation);
      same(CHECK, `the block of ${name}`, [head.blockNumber, head.blockHash], [row?.toBlock, row?.blockHash]);
      if (head.generation < generation) throw new VerifyError(CHECK, `${name} is older than the one before it`);
      const touched = await advance(verification, sums, generation, head.generation);
      await countFills(verification, fills, generation, head.generation);
      generation = head.generation;
      const changed = await readChangedRows(q, head.checkpointSeq - 1, head.checkpointSeq);
      await state.apply(changed);
      for (const key of new Set([...touched, ...changed.map(rowKey)])) {
        const derived = sums.get(key);
        const [account, token] = key.split(':') as [Address, Address];
        const stored = state.rowsOf(account).find((one) => one.token === token);
        same(
          CHECK,
          `${account} in ${token} at ${name}`,
          pair(stored),
          derived?.balanceUnits === 0n ? null : pair(derived),
        );
      }
      same(CHECK, `the fills in ${name}`, fillSeqsOf(head.ackFillSeqs), fillSeqsOf(seqsByIndex(verification, fills)));
      await checkSettlements(verification, sums, head);
      same(CHECK, `root and leaves of ${name}`, [head.root, head.leafCount], [state.root(), state.size]);
      done += 1;
      onProgress({ check: CHECK, done, total });
    }
    if (heads.length < PAGE) break;
  }
  await checkReferences(verification, last);
  return done;
}

/** Result of comparing the checkpoint published before a loss with the rebuilt ledger. */
export type ArchivedVerdict =
  | 'agrees'
  | 'differs'
  /** Its block is not scanned yet, is not on the chain any more, or lies within a scan of before it was known. */
  | 'not_compared';

/**
 * Compares the newest checkpoint that a lost database had published with this database's balances at the same block. Null when none was
 * imported. A difference is a warning: this ledger follows from the chain and the archive, but other balances were published.
 */
export async function compareArchivedCheckpoint(verification: Verification): Promise<ArchivedVerdict | null> {
  const { q, head, warn } = verification;
  const archived = await readArchivedCheckpoint(q);
  if (archived === null) return null;
  const at = archived.blockNumber > head.toBlock ? null : await newestWithin(q, archived.blockNumber);
  const name = `checkpoint ${archived.checkpointSeq}, which was published before the loss,`;
  if (at === null || at.toBlock !== archived.blockNumber || at.blockHash !== archived.blockHash) {
    warn(`${name} could not be compared: no scan ends at its block ${archived.blockNumber} (${archived.blockHash})`);
    return 'not_compared';
  }
  const sums: Sums = new Map();
  await advance(verification, sums, 0, at.generation);
  const state = createCheckpointState();
  await state.apply([...sums.values()]);
  if (state.root() === archived.root && state.size === archived.leafCount) return 'agrees';
  warn(
    `${name} has root ${archived.root} with ${archived.leafCount} balances; this database has ${state.root()} with ${state.size} at block ${at.toBlock}`,
  );
  return 'differs';
}

/** Settlements are numbered, and each is explained: by a checkpoint, or by an act of the operator. No row is of a checkpoint that is not. */
async function checkReferences(verification: Verification, last: number): Promise<void> {
  const { q } = verification;
  const newest = (await extremes(q, 'checkpoint_rows', 'checkpoint_seq'))?.most ?? 0;
  if (newest > last) throw new VerifyError(CHECK, `checkpoint ${newest} has rows and is missing`);
  const least = (await extremes(q, 'settlements', 'settlement_no'))?.least ?? 1;
  let prepared = least - 1;
  for (let rows = await page(); rows.length > 0; rows = await page()) {
    for (const one of rows) {
      same(CHECK, 'the number of a settlement', one.settlement_no, Math.max(prepared, 0) + 1);
      prepared = one.settlement_no;
      await checkReference(verification, one, last);
    }
  }
  await checkOutcomes(verification, prepared);

  function page(): Promise<Stored<'settlements'>[]> {
    return readRows(q, 'settlements', { above: ['settlement_no', prepared], orderBy: ['settlement_no'], limit: PAGE });
  }
}

/** What explains one settlement. */
async function checkReference(verification: Verification, one: Stored<'settlements'>, last: number): Promise<void> {
  const { q } = verification;
  const name = `settlement ${one.settlement_no}`;
  if (one.prepared_by !== 'archive') await checkPrevious(verification, name, one);
  if (one.prepared_by === 'operator') {
    const where = { operator_seq: one.operator_seq ?? 0, kind: 'lowerClaim' } as const;
    const act = await firstRow(q, 'operator_log', { where });
    // A claim that was not above the amount stayed as it was.
    const left = act && minBig(fromColumn(act.amount_units), fromColumn(one.previous_units));
    const asked = act && [act.maker, act.token, left, 0];
    same(CHECK, `what ${name} says`, [one.maker, one.token, one.amount_units, one.checkpoint_seq], asked);
  } else if (one.prepared_by === 'archive') {
    const own = [one.checkpoint_seq, one.cut_generation, one.operator_seq];
    same(CHECK, `what ${name} is of this database`, own, [0, 0, null]);
  } else {
    same(CHECK, `who prepared ${name}`, [one.prepared_by, one.operator_seq], ['settler', null]);
    if (one.checkpoint_seq < 1 || one.checkpoint_seq > last)
      throw new VerifyError(CHECK, `${name} was computed from checkpoint ${one.checkpoint_seq}, which is missing`);
  }
}

/** What the claim was when the settlement was computed, unless a reorganisation has taken that back. */
async function checkPrevious({ q, reversals }: Verification, name: string, one: Stored<'settlements'>): Promise<void> {
  const { maker, token, cut_generation: cutGeneration } = one;
  if (isTakenBack(reversals, cutGeneration)) return;
  const claim = await claimUpTo(q, { maker, token }, cutGeneration);
  same(CHECK, `the claim before ${name}`, one.previous_units, claim?.claim_units ?? '0');
}

/** Only prepared settlements have an end, and each landed one was seen on-chain, possibly in blocks that the chain has lost since. */
async function checkOutcomes({ q, reversals }: Verification, prepared: number): Promise<void> {
  const rows = await readEnds(q);
  for (const { settlement_no: no, outcome, tx_hash: seenIn } of rows) {
    const known = ['landed', 'refused', 'abandoned'].includes(outcome) && no >= 1 && no <= prepared;
    if (!known || (outcome === 'landed' && seenIn === null && reversals.length === 0))
      throw new VerifyError(CHECK, `settlement ${no} has ended as ${outcome}, and nothing explains it`);
  }
}

const pair = (row: CheckpointRow | undefined): [bigint, bigint] | null =>
  row === undefined ? null : [row.balanceUnits, row.reservedUnits];

/** Counts the fills that stand, per market id: they are numbered without gaps, and one that was taken back is posted as such. */
async function countFills({ q }: Verification, fills: Map<string, number>, from: number, to: number): Promise<void> {
  for (let start = from + 1; start <= to; start += PAGE) {
    const span = { from: start, to: Math.min(start + PAGE - 1, to) };
    for (const ref of await readFillRefs(q, span)) {
      const [, market = ''] = (isReversedRef(ref) ? ref.slice(reversedRef('').length) : ref).split(':');
      fills.set(market, (fills.get(market) ?? 0) + (isReversedRef(ref) ? -1 : 1));
    }
  }
}

const seqsByIndex = ({ markets }: Verification, fills: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries(markets.map(({ id, index }) => [String(index), fills.get(id) ?? 0]));

/** A market without a fill may be missing. */
const fillSeqsOf = (seqs: Readonly<Record<string, number>>): [string, number][] =>
  Object.entries(seqs)
    .filter(([, seq]) => seq !== 0)
    .sort(([a], [b]) => (a < b ? -1 : 1));

/** A settlement that the settler prepared from a checkpoint is the amount reserved at that time, at most the balance. */
async function checkSettlements({ q }: Verification, sums: Sums, head: CheckpointHead): Promise<void> {
  const where = { checkpoint_seq: head.checkpointSeq, prepared_by: 'settler' } as const;
  const rows = await readRows(q, 'settlements', { where, orderBy: ['settlement_no'] });
  for (const row of rows) {
    const sum = sums.get(rowKey({ account: row.maker, token: row.token }));
    const derived = settlementUnits(sum?.reservedUnits ?? 0n, sum?.balanceUnits ?? 0n);
    const name = `settlement ${row.settlement_no}`;
    same(CHECK, `the amount of ${name}`, fromColumn(row.amount_units), derived);
    same(CHECK, `the cut of ${name}`, [row.cut_generation, row.cut_block], [head.generation, head.blockNumber]);
  }
}

/** Adds what generations after `from` and up to `to` posted; returns the accounts' rows that it touched. */
async function advance({ q }: Verification, sums: Sums, from: number, to: number): Promise<Set<string>> {
  const touched = new Set<string>();
  const of = (account: Address, token: Address): CheckpointRow => {
    const key = rowKey({ account, token });
    touched.add(key);
    const row = sums.get(key) ?? { account, token, balanceUnits: 0n, reservedUnits: 0n };
    sums.set(key, row);
    return row;
  };
  for (let start = from + 1; start <= to; start += PAGE) {
    const span = { from: start, to: Math.min(start + PAGE - 1, to) };
    const between: ['generation', number, number] = ['generation', span.from, span.to];
    for (const { account, token, amount_units: units } of await readEntries(q, span))
      if (isAddress(account)) of(account, token).balanceUnits += fromColumn(units);
    for (const { account, token, reserved_delta_units: units } of await readRows(q, 'balance_changes', { between }))
      if (isAddress(account)) of(account, token).reservedUnits += fromColumn(units);
  }
  return touched;
}
