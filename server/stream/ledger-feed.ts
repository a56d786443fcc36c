/** Pushes deposits and executed withdrawals of accounts when they become durable. */
import type { Address } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import type { Db } from '../../ledger/types.js';
import { ledgerUpdatesBetween, newestLedgerUpdates, type LedgerUpdate } from '../../ledger/views/ledger-updates.js';
import type { Gateway } from '../orders/engine.js';
import { ledgerUpdateRows } from '../orders/info/ledger-updates.js';
import { MAX_LEDGER_UPDATES } from '../orders/limits.js';
import type { GatewayLogger } from '../orders/types.js';
import type { FirstReads, OnRead } from './first-reads.js';
import { channelFrame, type UpdateListener } from './send-queue.js';

/** Deposits and executed withdrawals by account: the latest first, then each later one once. */
interface LedgerFeed {
  subscribe(user: Address, listener: UpdateListener, onRead: OnRead): void;
  unsubscribe(user: Address, listener: UpdateListener): void;
  /** Generations became durable. */
  onGenerations(range: { from: number; to: number }): void;
}

interface LedgerFeedDeps {
  gateway: Pick<Gateway, 'markets' | 'generation'>;
  db: Db;
  clock: () => number;
  logger: GatewayLogger;
  firstReads: FirstReads;
}

/** Newest generation that a subscription was sent; null while its first frame is being read. */
interface Cursor {
  upTo: number | null;
  waiting: { generation: number; frame: Buffer }[];
}

const CHANNEL = 'userNonFundingLedgerUpdates';
/** Updates that are read at a time. */
const PAGE = 1_000;

/** `nextSeq` numbers events over all feeds of the process. */
export function createLedgerFeed(deps: LedgerFeedDeps, nextSeq: () => number): LedgerFeed {
  const { gateway, db, clock, logger, firstReads } = deps;
  const cursors = new Map<Address, Map<UpdateListener, Cursor>>();
  let telling: Promise<void> = Promise.resolve();

  async function sendFirst(user: Address, listener: UpdateListener, cursor: Cursor, onRead: OnRead): Promise<void> {
    const upTo = gateway.generation();
    const limit = MAX_LEDGER_UPDATES;
    try {
      const nonFundingLedgerUpdates = await readTx(db, async (q) =>
        ledgerUpdateRows(q, await newestLedgerUpdates(q, user, { upTo, limit }), gateway.markets()),
      );
      onRead(nonFundingLedgerUpdates);
      if (cursors.get(user)?.get(listener) !== cursor) return;
      listener.queue.reply(channelFrame(CHANNEL, { isSnapshot: true, user, nonFundingLedgerUpdates }));
    } catch (error) {
      logger.error({ err: error, user }, 'deposits and withdrawals could not be read for a subscriber');
      return listener.lost();
    }
    cursor.upTo = upTo;
    for (const { generation, frame } of cursor.waiting.splice(0))
      if (generation > upTo) listener.queue.event({ frame, seq: nextSeq(), timeMs: clock() });
  }

  async function tell({ from, to }: { from: number; to: number }): Promise<void> {
    if (cursors.size === 0) return;
    try {
      for (let skip = 0; ; skip += PAGE) {
        const page = await ledgerUpdatesBetween(db.reads, { from, to, limit: PAGE, skip });
        for (const [generation, group] of Map.groupBy(page, (update) => update.generation))
          for (const [user, own] of Map.groupBy(group, (update) => update.account))
            await tellUser(user, generation, own);
        if (page.length < PAGE) return;
      }
    } catch (error) {
      logger.error(
        { err: error },
        'deposits and withdrawals could not be read for their subscribers, who are disconnected',
      );
      for (const own of cursors.values()) [...own.keys()].forEach((listener) => listener.lost());
    }
  }

  async function tellUser(user: Address, generation: number, own: readonly LedgerUpdate[]): Promise<void> {
    if (!cursors.has(user)) return;
    const nonFundingLedgerUpdates = await ledgerUpdateRows(db.reads, own, gateway.markets());
    if (nonFundingLedgerUpdates.length === 0) return;
    const frame = channelFrame(CHANNEL, { user, nonFundingLedgerUpdates });
    for (const [listener, cursor] of cursors.get(user) ?? []) {
      if (cursor.upTo === null) cursor.waiting.push({ generation, frame });
      else if (generation > cursor.upTo) listener.queue.event({ frame, seq: nextSeq(), timeMs: clock() });
    }
  }

  return {
    subscribe(user, listener, onRead) {
      const cursor: Cursor = { upTo: null, waiting: [] };
      const own = cursors.get(user) ?? new Map<UpdateListener, Cursor>();
      cursors.set(user, own.set(listener, cursor));
      firstReads.add(listener, cursor, () => sendFirst(user, listener, cursor, onRead));
    },
    unsubscribe(user, listener) {
      const own = cursors.get(user);
      const cursor = own?.get(listener);
      if (cursor !== undefined) firstReads.drop(listener, cursor);
      own?.delete(listener);
      if (own?.size === 0) cursors.delete(user);
    },
    onGenerations({ from, to }) {
      telling = telling.then(() => tell({ from, to }));
    },
  };
}
