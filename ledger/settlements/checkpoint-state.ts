/** The rows of a checkpoint in memory, with the tree over them, brought up to date by what changed. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EMPTY_TREE, leafHash, merkleProof, merkleRoot, updateTree, type MerkleTree } from '../../core/merkle.js';
import type { Address, Hex } from '../../core/types.js';
import { rowKey } from './checkpoint-log.js';
import { eachInSlices } from '../db/lists.js';
import type { CheckpointRow } from '../types.js';

/** Rows with a balance other than zero, each of them a leaf. */
export interface CheckpointState {
  readonly size: number;
  root(): Hex;
  rowsOf(account: Address): CheckpointRow[];
  /** Accounts with a row, in no order. */
  accounts(): Iterable<Address>;
  /** Siblings from the row's leaf to the root. Throws RangeError for a row that is not of this state. */
  proofOf(row: CheckpointRow): Hex[];
  /**
   * Applies rows as they are now, and returns those that differ from what was here; a row without a balance is removed. Works in slices and
   * yields to the event loop between them; one call at a time. Nothing is applied when it fails.
   */
  apply(rows: readonly CheckpointRow[]): Promise<CheckpointRow[]>;
}

/** A state without rows. */
export function createCheckpointState(): CheckpointState {
  const accounts = new Map<Address, Map<Address, CheckpointRow>>();
  let tree: MerkleTree = EMPTY_TREE;
  let size = 0;

  const find = (row: CheckpointRow): CheckpointRow | undefined => accounts.get(row.account)?.get(row.token);
  const hashOf = (row: CheckpointRow): Uint8Array => leafHash(row.account, row.token, row.balanceUnits);

  function put(row: CheckpointRow): void {
    const account = row.account;
    const rows = accounts.get(account) ?? new Map<Address, CheckpointRow>();
    if (row.balanceUnits === 0n) rows.delete(row.token);
    else rows.set(row.token, row);
    if (rows.size === 0) accounts.delete(account);
    else accounts.set(account, rows);
  }

  async function apply(rows: readonly CheckpointRow[]): Promise<CheckpointRow[]> {
    const changed: CheckpointRow[] = [];
    const removed: Uint8Array[] = [];
    const added: Uint8Array[] = [];
    await eachInSlices(rows, (row) => {
      const before = find(row);
      const balanceBefore = before?.balanceUnits ?? 0n;
      const same = balanceBefore === row.balanceUnits && (before?.reservedUnits ?? 0n) === row.reservedUnits;
      // A row without a balance that was not here before: a request of an account that has nothing.
      if (same || (before === undefined && row.balanceUnits === 0n)) return;
      changed.push(row);
      if (balanceBefore === row.balanceUnits) return;
      if (before !== undefined) removed.push(hashOf(before));
      if (row.balanceUnits !== 0n) added.push(hashOf(row));
    });
    const next = await run(updateTree(tree, removed, added));
    await eachInSlices(changed, (row) => {
      size += (row.balanceUnits === 0n ? 0 : 1) - (find(row) === undefined ? 0 : 1);
      put(row);
    });
    tree = next;
    return changed;
  }

  return {
    get size() {
      return size;
    },
    root: () => merkleRoot(tree),
    rowsOf: (account) => [...(accounts.get(account)?.values() ?? [])],
    accounts: () => accounts.keys(),
    proofOf(row) {
      const proof = merkleProof(tree, hashOf(row));
      if (proof === null) throw new RangeError(`no leaf for ${rowKey(row)}`);
      return proof;
    },
    apply,
  };
}

/** Yields to the event loop after every slice. */
async function run<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await nextTurn();
  }
}
