import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OrderLogRow } from '../../core/types.js';
import { WriterLostError } from '../../ledger/errors.js';
import type { Writer } from '../../ledger/types.js';
import { GatewayUnavailableError } from './refusals.js';
import type { Transaction } from '../../ledger/types.js';
import type { GatewayLogger } from './types.js';

/** A judged entry: the rows to append, if any, and the answer once the group is durable. */
export interface Plan<R> {
  rows: readonly OrderLogRow[];
  answer: R;
}

/**
 * Steps that the group commit calls. There are two states: `planned` runs ahead within one group, `committed` only changes after a commit.
 */
export interface GroupSteps<E, R> {
  /** Reads, inside the transaction, what the group is judged by. */
  begin: (tx: Transaction) => Promise<void>;
  /** Judges an entry on the planned state and applies its rows there. */
  plan: (entry: E) => Plan<R>;
  append: (tx: Transaction, rows: readonly OrderLogRow[]) => Promise<void>;
  /** Rows of the log that the committed state lacks. */
  readBack: (tx: Transaction) => Promise<OrderLogRow[]>;
  /** Applies durable rows to the committed state. */
  commit: (rows: readonly OrderLogRow[]) => void;
  /** Makes the planned state equal to the committed one. */
  rollback: () => void;
}

interface GroupCommit<E, R> {
  /** Resolves with the answer after the commit of its rows. Rejects with GatewayUnavailableError. */
  submit: (entry: E) => Promise<R>;
  /** Entries that no transaction has taken up yet. */
  waiting: () => number;
  /** True once another process owns the log; nothing is accepted any more. */
  isLost: () => boolean;
  /** Resolves when everything submitted so far has been answered. */
  idle: () => Promise<void>;
}

interface Waiting<E, R> {
  entry: E;
  resolve: (answer: R) => void;
  reject: (error: unknown) => void;
}

/** Most entries in one transaction. */
const MAX_GROUP = 256;
/** Most turns of the event loop that a group waits for more entries. */
const MAX_TURNS = 4;

/**
 * Self-clocked group commit: whatever queued up while the last transaction ran is judged and committed in the next one. A group that fails
 * is rolled back and its entries are tried one by one, so that one entry can't make others fail. After any failure the log is read back
 * inside the writer's next transaction, and no answer is sent before it is known what is durable.
 */
export function createGroupCommit<E, R>(
  writer: Writer,
  steps: GroupSteps<E, R>,
  logger: GatewayLogger,
): GroupCommit<E, R> {
  const queue: Waiting<E, R>[] = [];
  let tail: Promise<void> = Promise.resolve();
  let scheduled = false;
  let lost = false;
  /** The last transaction may have left rows that the committed state lacks. */
  let uncertain = false;

  function submit(entry: E): Promise<R> {
    if (lost) return Promise.reject(standby());
    return new Promise<R>((resolve, reject) => {
      queue.push({ entry, resolve, reject });
      schedule();
    });
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    tail = tail.then(async () => {
      await gather();
      scheduled = false;
      await runGroup(queue.splice(0, MAX_GROUP));
      if (queue.length > 0) schedule();
    });
  }

  /**
   * One turn of the event loop lets every request join that has arrived by now, since SQLite blocks the loop while it commits. More
   * requests arrive while those are read, so turns go on as long as they bring entries, up to a limit.
   */
  async function gather(): Promise<void> {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const { length } = queue;
      await nextTurn();
      if (queue.length === length) return;
    }
  }

  /** Answers every member of the group, one way or the other; it never rejects. */
  async function runGroup(group: Waiting<E, R>[]): Promise<void> {
    let plans: Plan<R>[] = [];
    let hasBegun = false;
    const begin = async (tx: Transaction): Promise<void> => {
      await steps.begin(tx);
      hasBegun = true;
    };
    if (uncertain && !(await settled(group))) return;
    try {
      await writer.tx(async (tx) => {
        if (!hasBegun) await begin(tx);
        plans = group.map(({ entry }) => steps.plan(entry));
        const rows = rowsOf(plans);
        if (rows.length > 0) await steps.append(tx, rows);
      }, begin);
    } catch (error) {
      await failGroup(group, plans, error);
      return;
    }
    finish(group, plans, rowsOf(plans));
  }

  /** Resolves the uncertain outcome of an earlier group; when that fails, nothing of this group was tried. */
  async function settled(group: Waiting<E, R>[]): Promise<boolean> {
    try {
      await settle();
      return true;
    } catch (error) {
      logger.error({ err: error }, 'the order log can not be read back');
      if (error instanceof WriterLostError) lose(group);
      else rejectUnstored(group, error);
      return false;
    }
  }

  function finish(group: readonly Waiting<E, R>[], plans: readonly Plan<R>[], rows: readonly OrderLogRow[]): void {
    steps.commit(rows);
    group.forEach((waiting, index) => waiting.resolve(plans[index]!.answer));
  }

  async function failGroup(group: Waiting<E, R>[], plans: readonly Plan<R>[], error: unknown): Promise<void> {
    logger.error({ err: error, entries: group.length }, 'a group of actions failed to commit');
    if (error instanceof WriterLostError) return lose(group);
    uncertain = true;
    let landed: OrderLogRow[];
    try {
      landed = await settle();
    } catch (readError) {
      logger.error({ err: readError }, 'the order log can not be read back');
      const unknown = new GatewayUnavailableError(
        'outcome_unknown',
        'The action may or may not have been stored; look by client order id before sending it again',
        { cause: error },
      );
      group.forEach((waiting) => waiting.reject(unknown));
      // The new owner of the log may have found the group's rows in it.
      if (readError instanceof WriterLostError) lose([]);
      return;
    }
    if (landed.length > 0 && sameRows(landed, rowsOf(plans))) {
      group.forEach((waiting, index) => waiting.resolve(plans[index]!.answer));
      return;
    }
    await retrySingly(group, error);
  }

  async function retrySingly(group: Waiting<E, R>[], error: unknown): Promise<void> {
    if (group.length > 1) {
      for (const waiting of group) await runGroup([waiting]);
      return;
    }
    rejectUnstored(group, error);
  }

  function rejectUnstored(group: readonly Waiting<E, R>[], cause: unknown): void {
    const failed = new GatewayUnavailableError('write_failed', 'Nothing of the action was stored', { cause });
    group.forEach((waiting) => waiting.reject(failed));
  }

  /** Moves both states to the durable rows and returns those that the committed state lacked. */
  async function settle(): Promise<OrderLogRow[]> {
    steps.rollback();
    const landed = await writer.tx((tx) => steps.readBack(tx));
    if (landed.length > 0) steps.commit(landed);
    steps.rollback();
    uncertain = false;
    return landed;
  }

  function lose(group: readonly Waiting<E, R>[]): void {
    lost = true;
    steps.rollback();
    for (const waiting of [...group, ...queue.splice(0)]) waiting.reject(standby());
  }

  return {
    submit,
    waiting: () => queue.length,
    isLost: () => lost,
    async idle() {
      while (scheduled || queue.length > 0) await tail;
      await tail;
    },
  };
}

/** The group commit of a process that does not own the log. */
export function createNoCommit<E, R>(): GroupCommit<E, R> {
  return {
    submit: () => Promise.reject(standby()),
    isLost: () => true,
    waiting: () => 0,
    idle: () => Promise.resolve(),
  };
}

/** Error of a process that does not own the log. */
export const standby = (): GatewayUnavailableError =>
  new GatewayUnavailableError('standby', 'Another process owns the order log; nothing was stored');

function rowsOf<R>(plans: readonly Plan<R>[]): OrderLogRow[] {
  return plans.flatMap(({ rows }) => rows);
}

function sameRows(landed: readonly OrderLogRow[], planned: readonly OrderLogRow[]): boolean {
  if (landed.length !== planned.length) return false;
  return landed.every((row, index) => {
    const other = planned[index]!;
    return row.orderSeq === other.orderSeq && row.signer === other.signer && row.nonce === other.nonce;
  });
}
