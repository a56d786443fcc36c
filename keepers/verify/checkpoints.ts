import { settlementUnits } from '../../core/claims.js';
import type { Address } from '../../core/types.js';
import { readChangedRows, readCheckpoints, rowKey } from '../../ledger/checkpoint-log.js';
import { createCheckpointState } from '../../ledger/checkpoint-state.js';
import { fromColumn } from '../../ledger/columns.js';
import { readGeneration } from '../../ledger/generations.js';
import { isReversedRef, reversedRef } from '../../ledger/refs.js';
import { VAULT, type Account, type CheckpointHead, type CheckpointRow } from '../../ledger/types.js';
import { VerifyError, same, type Verification } from './verify.js';

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
  return done;
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
