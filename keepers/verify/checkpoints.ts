import { minBig } from '../../core/amounts.js';
import { settlementUnits } from '../../core/claim-state.js';
import type { Address } from '../../core/types.js';
import { isTakenBack } from '../../ledger/chain/branches.js';
import { readChangedRows, readCheckpoints, rowKey } from '../../ledger/settlements/checkpoint-log.js';
import { createCheckpointState } from '../../ledger/settlements/checkpoint-state.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { readGeneration } from '../../ledger/chain/generations.js';
import { isReversedRef, reversedRef } from '../../ledger/chain/refs.js';
import { VAULT, type Account, type CheckpointHead, type CheckpointRow } from '../../ledger/types.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'checkpoints';
const PAGE = 500;

/** What the postings say an account has, summed up so far. */
type Sums = Map<string, CheckpointRow>;

/**
 * Derives every checkpoint from the postings up to its generation: its rows, its root, the fills in it, the block that it names, and the
 * settlements that were computed from it. Since what was taken back is posted with the opposite sign, the sum up to a generation is the
 * state that stood then. Returns their number.
 */
export async function verifyCheckpoints(verification: Verification): Promise<number> {
  const { q, onProgress } = verification;
  const total = ((await q('checkpoints').count({ count: '*' }).first()) as { count: number }).count;
  const sums: Sums = new Map();
  const fills = new Map<string, number>();
  const state = createCheckpointState();
  let generation = 0;
  let done = 0;
  for (;;) {
    const heads = await readCheckpoints(q, { after: done, limit: PAGE });
    for (const head of heads) {
      const name = `checkpoint ${head.checkpointSeq}`;
      same(CHECK, 'the number of a checkpoint', head.checkpointSeq, done + 1);
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
  await checkReferences(verification, done);
  return done;
}

interface StoredSettlement {
  settlement_no: number;
  maker: Address;
  token: Address;
  amount_units: string;
  previous_units: string;
  prepared_by: string;
  operator_seq: number | null;
  checkpoint_seq: number;
  cut_generation: number;
}

/** Settlements are numbered, and each is explained: by a checkpoint, or by an act of the operator. No row is of a checkpoint that is not. */
async function checkReferences(verification: Verification, last: number): Promise<void> {
  const { q } = verification;
  const row = (await q('checkpoint_rows').max({ last: 'checkpoint_seq' }).first()) as { last: number | null };
  if ((row.last ?? 0) > last) throw new VerifyError(CHECK, `checkpoint ${row.last} has rows and is missing`);
  const rows = (await q('settlements').orderBy('settlement_no').select()) as StoredSettlement[];
  for (const [i, one] of rows.entries()) {
    const name = `settlement ${one.settlement_no}`;
    same(CHECK, 'the number of a settlement', one.settlement_no, i + 1);
    await checkPrevious(verification, name, one);
    if (one.prepared_by === 'operator') {
      const act = (await q('operator_log').where({ operator_seq: one.operator_seq, kind: 'lowerClaim' }).first()) as
        { maker: Address; token: Address; amount_units: string } | undefined;
      // A claim that was not above the amount stayed as it was.
      const left = act && minBig(fromColumn(act.amount_units), fromColumn(one.previous_units));
      const asked = act && [act.maker, act.token, left, 0];
      same(CHECK, `what ${name} says`, [one.maker, one.token, one.amount_units, one.checkpoint_seq], asked);
    } else {
      same(CHECK, `who prepared ${name}`, [one.prepared_by, one.operator_seq], ['settler', null]);
      if (one.checkpoint_seq < 1 || one.checkpoint_seq > last)
        throw new VerifyError(CHECK, `${name} was computed from checkpoint ${one.checkpoint_seq}, which is missing`);
    }
  }
  await checkOutcomes(verification, rows.length);
}

/** What the claim was when the settlement was computed, unless a reorganisation has taken that back. */
async function checkPrevious({ q, reversals }: Verification, name: string, one: StoredSettlement): Promise<void> {
  const { maker, token, cut_generation: cutGeneration } = one;
  if (isTakenBack(reversals, cutGeneration)) return;
  const claim = await q('claim_changes')
    .where({ maker, token })
    .where('generation', '<=', cutGeneration)
    .orderBy('generation', 'desc')
    .first<{ claim_units: string } | undefined>('claim_units');
  same(CHECK, `the claim before ${name}`, one.previous_units, claim?.claim_units ?? '0');
}

/** Only what was prepared has an end, and what has landed was seen, if only in blocks that the chain has lost since. */
async function checkOutcomes({ q, reversals }: Verification, prepared: number): Promise<void> {
  const rows = await q('settlement_outcomes as ended')
    .leftJoin('custody_events as seen', 'seen.settlement_no', 'ended.settlement_no')
    .select<{ settlement_no: number; outcome: string; tx_hash: string | null }[]>('ended.*', 'seen.tx_hash');
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
    const rows = await q('entries')
      .whereBetween('generation', [start, Math.min(start + PAGE - 1, to)])
      .where({ account: VAULT })
      .where((any) => void any.where('ref', 'like', 'fill:%').orWhere('ref', 'like', `${reversedRef('fill:')}%`))
      .distinct<{ ref: string }[]>('ref');
    for (const { ref } of rows) {
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

interface PreparedRow {
  settlement_no: number;
  maker: Address;
  token: Address;
  amount_units: string;
  cut_generation: number;
  cut_block: number;
}

/** What the settler prepared from a checkpoint is everything that was reserved then, as far as the balance went. */
async function checkSettlements({ q }: Verification, sums: Sums, head: CheckpointHead): Promise<void> {
  const rows = (await q('settlements')
    .where({ checkpoint_seq: head.checkpointSeq, prepared_by: 'settler' })
    .orderBy('settlement_no')
    .select()) as PreparedRow[];
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
  const of = (account: Account, token: Address): CheckpointRow => {
    const key = rowKey({ account, token });
    touched.add(key);
    const row = sums.get(key) ?? { account, token, balanceUnits: 0n, reservedUnits: 0n };
    sums.set(key, row);
    return row;
  };
  for (let start = from + 1; start <= to; start += PAGE) {
    const span = [start, Math.min(start + PAGE - 1, to)] as const;
    const entries = await q('entries')
      .whereBetween('generation', span)
      .where('account', 'like', '0x%')
      .select<{ account: Address; token: Address; amount_units: string }[]>('account', 'token', 'amount_units');
    for (const { account, token, amount_units: units } of entries) of(account, token).balanceUnits += fromColumn(units);
    const changes = await q('balance_changes')
      .whereBetween('generation', span)
      .select<{ account: Address; token: Address; reserved_delta_units: string }[]>(
        'account',
        'token',
        'reserved_delta_units',
      );
    for (const { account, token, reserved_delta_units: units } of changes)
      of(account, token).reservedUnits += fromColumn(units);
  }
  return touched;
}
