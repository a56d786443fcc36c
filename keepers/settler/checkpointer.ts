import { insertCheckpoint, lastCheckpoint, readCheckpointState } from '../../ledger/settlements/checkpoint-log.js';
import { nextCheckpointSeq, readArchivedCheckpoint } from '../../ledger/settlements/archived-checkpoint.js';
import { createCheckpointState, type CheckpointState } from '../../ledger/settlements/checkpoint-state.js';
import { readTx } from '../../ledger/db/db.js';
import type { CheckpointHead, CheckpointRow, Db, Transaction } from '../../ledger/types.js';
import type { SettlerView } from './view.js';

/** A checkpoint that is not durable yet, and the rows that it changes. */
export interface NewCheckpoint {
  head: CheckpointHead;
  changed: CheckpointRow[];
}

/** Cuts checkpoints, one at a time. Its state is that of the last cut; after a failure the next use reads the durable state. */
export interface Checkpointer {
  /** Generation of the last checkpoint, 0 before the first. */
  generation(): Promise<number>;
  /** When the last checkpoint was published; long ago before the first. */
  publishedMs(): Promise<number>;
  /** The ledger as the view found it. `view.changed` starts at `generation()`. */
  cut(view: Pick<SettlerView, 'head' | 'changed' | 'ackFillSeqs'>, nowMs: number): Promise<NewCheckpoint>;
  /** Calls `write` with a function that stores the cut; the cut is the last checkpoint once `write` resolves. */
  commit<T>(cut: NewCheckpoint, write: (store: (tx: Transaction) => Promise<void>) => Promise<T>): Promise<T>;
}

interface Loaded {
  head: CheckpointHead | null;
  /** Of a database that was lost. */
  archived: CheckpointHead | null;
  state: CheckpointState;
}

/** A checkpointer that goes on where the last durable checkpoint ended. */
export function createCheckpointer(db: Db): Checkpointer {
  let loaded: Loaded | null = null;

  async function load(): Promise<Loaded> {
    if (loaded !== null) return loaded;
    const state = createCheckpointState();
    const { head, rows, archived } = await readTx(db, async (q) => {
      const last = await lastCheckpoint(q);
      return {
        head: last,
        archived: await readArchivedCheckpoint(q),
        rows: last === null ? [] : await readCheckpointState(q, last),
      };
    });
    await state.apply(rows);
    if (head !== null && state.root() !== head.root) {
      throw new RangeError(`checkpoint ${head.checkpointSeq} has root ${head.root}, its rows give ${state.root()}`);
    }
    loaded = { head, archived, state };
    return loaded;
  }

  /** After an error the state is dropped, because a cut may have been applied that is not durable. */
  async function guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      loaded = null;
      throw error;
    }
  }

  return {
    generation: async () => (await load()).head?.generation ?? 0,
    publishedMs: async () => (await load()).head?.timestampMs ?? Number.NEGATIVE_INFINITY,
    cut: (view, nowMs) =>
      guarded(async () => {
        const { head, archived, state } = await load();
        const changed = await state.apply(view.changed);
        return {
          head: {
            checkpointSeq: nextCheckpointSeq(head?.checkpointSeq ?? 0, archived),
            generation: view.head.generation,
            blockNumber: view.head.toBlock,
            blockHash: view.head.blockHash,
            timestampMs: nowMs,
            root: state.root(),
            leafCount: state.size,
            ackFillSeqs: view.ackFillSeqs,
          },
          changed,
        };
      }),
    commit: (cut, write) =>
      guarded(async () => {
        const result = await write((tx) => insertCheckpoint(tx, cut.head, cut.changed));
        loaded = { ...(await load()), head: cut.head };
        return result;
      }),
  };
}
