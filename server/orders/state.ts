import { setImmediate as nextTurn } from 'node:timers/promises';
import { createAgents, type Agents } from '../../core/book/agents.js';
import type { Book } from '../../core/book.js';
import { createBook, type CompactedBook } from '../../core/book/create-book.js';
import type { Address, Market, OrderFill, OrderLogRow } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import { LedgerReversedError, LogCompactedError } from '../../ledger/errors.js';
import {
  readCompactedAccounts,
  readCompactedBook,
  readCompactionPosition,
  readKnownOrders,
  type CompactedAccounts,
  type CompactedOrder,
  type CompactionPosition,
} from '../../ledger/orders/compacted-book.js';
import { readBalances, readBalancesAfter, readGenerationEffects, readMarkets } from '../../ledger/chain/ledger-log.js';
import { readNoncesAfterMs } from '../../ledger/orders/restore.js';
import { readOrderRows } from '../../ledger/orders/order-log.js';
import type { BalanceRow, Db, GenerationEffects, Queryable } from '../../ledger/types.js';
import { createEvents, type Events, type OrderChange } from './events.js';
import { createHistory, type OrderHistory } from './history.js';
import { createInventory, type Inventory } from './inventory.js';
import { MAX_CLOSED_ORDERS } from './limits.js';

/** Rows read at a time. SQLite blocks the thread, so reading yields between two pages: probes are answered while a long log is read. */
const PAGE = 1_000;

/** The open orders and the agents after some row of the order log. */
interface BookState {
  book: Book;
  agents: Agents;
}

/** Everything the gateway holds in memory: only projections of the order log and the ledger log. */
export interface GatewayState {
  /** Grows as markets are listed; always the same array. */
  readonly markets: readonly Market[];
  readonly inventory: Inventory;
  readonly history: OrderHistory;
  readonly events: Events;
  /** Signed actions with a nonce up to this are refused, because the log that recorded used ones was lost; 0 when none was lost. */
  readonly noncesAfterMs: number;
  /** Durable rows only. */
  committed: () => BookState;
  /** Runs ahead of `committed` within one group commit. */
  planned: () => BookState;
  lastActionMs: (maker: Address) => number | null;
  lastRowMs: () => number;
  generation: () => number;
  commit: (rows: readonly OrderLogRow[]) => void;
  /** Makes `planned` equal to `committed`. */
  rollback: () => void;
  /** Applies the generations that became durable since the last call. Throws StateOutdatedError when they can't be applied. */
  follow: (db: Db) => Promise<void>;
  /**
   * Applies the generations and the rows that another process made durable since the last call, both read in one transaction, to
   * `committed` only: `planned` stays behind until `rollback`. Throws LogCompactedError when rows that it lacks were compacted, and
   * StateOutdatedError when what it read can't be applied.
   */
  followAll: (db: Db) => Promise<void>;
}

/** Rows of the logs could not be applied, or not all of them were: the state matches no point of the logs, and a new one must be loaded. */
export class StateOutdatedError extends Error {
  override readonly name = 'StateOutdatedError';
}

/** True for an error after which a state can't be moved forward by retrying: a new one must be loaded. */
export function isOutdated(error: unknown): boolean {
  return [StateOutdatedError, LogCompactedError, LedgerReversedError].some((type) => error instanceof type);
}

/** Replays both logs from the compacted book on, or from their beginnings while there is none. */
export async function loadState(db: Db): Promise<GatewayState> {
  const state = createState(await readTx(db, readStart));
  await state.followAll(db);
  state.rollback();
  return state;
}

/** Beginning of the state: the compacted book and the state beside it. */
interface Start {
  markets: Market[];
  position: CompactionPosition;
  noncesAfterMs: number;
  book: CompactedBook;
  accounts: CompactedAccounts;
  known: CompactedOrder[];
}

async function readStart(q: Queryable): Promise<Start> {
  const position = await readCompactionPosition(q);
  return {
    markets: await readMarkets(q),
    position,
    noncesAfterMs: await readNoncesAfterMs(q),
    book: await readCompactedBook(q, position),
    accounts: await readCompactedAccounts(q),
    known: await readKnownOrders(q, MAX_CLOSED_ORDERS),
  };
}

interface LedgerNews {
  markets: Market[];
  effects: GenerationEffects[];
  balances: BalanceRow[];
}

/**
 * Generations of the ledger log after one, and the balances after the last of them, read in one transaction: those that changed, or all
 * when none were read before.
 */
async function readNews(q: Queryable, after: number, hasBalances: boolean): Promise<LedgerNews> {
  const effects: GenerationEffects[] = [];
  for (;;) {
    const page = await readGenerationEffects(q, { after: effects.at(-1)?.generation ?? after, limit: PAGE });
    effects.push(...page);
    if (page.length < PAGE) break;
    await nextTurn();
  }
  if (effects.length === 0) return { markets: [], effects, balances: [] };
  const balances = hasBalances ? await readBalancesAfter(q, after) : await readBalances(q);
  return { markets: await readMarkets(q), effects, balances };
}

function createState(start: Start): GatewayState {
  const { markets, position, accounts } = start;
  const inventory = createInventory();
  const history = createHistory(markets, MAX_CLOSED_ORDERS, { orders: start.known, oid: position.oid });
  const events = createEvents();
  const lastAction = new Map<Address, number>(accounts.lastActionMs);
  const committed: BookState = {
    book: createBook(markets, start.book),
    agents: createAgents(accounts.agents, accounts.everAgents),
  };
  let planned = copyOf(committed);
  let lastRowMs = position.timeMs;
  let generation = position.generation;
  let hasBalances = false;
  let following: Promise<void> | null = null;

  async function follow(db: Db): Promise<void> {
    const news = await readTx(db, (tx) => readNews(tx, generation, hasBalances));
    await applying(() => applyNews(news, [committed, planned]));
  }

  async function followAll(db: Db): Promise<void> {
    for (;;) {
      const after = committed.book.lastOrderSeq();
      // In one transaction: the process that appended a row had read the listing of its market before.
      const { news, rows } = await readTx(db, async (tx) => ({
        news: await readNews(tx, generation, hasBalances),
        rows: await readOrderRows(tx, { after, limit: PAGE }),
      }));
      // The owner of the log has applied all rows that it compacts; a standby that has not, after a long pause, must start again.
      if (rows[0] !== undefined && rows[0].orderSeq !== after + 1)
        throw new LogCompactedError(`order row ${after + 1}`);
      await applying(() => applyNews(news, [committed]));
      await applying(() => commit(rows));
      if (rows.length < PAGE) return;
      await nextTurn();
    }
  }

  async function applyNews(news: LedgerNews, onto: readonly BookState[]): Promise<void> {
    if (news.effects.length === 0) return;
    // After the first load there is no await from here on, so that readers see a generation whole or not at all.
    const isLoading = !hasBalances;
    const from = generation + 1;
    markets.push(...news.markets.slice(markets.length));
    const fills = news.effects.flatMap(({ orderFills }) => orderFills);
    const touched = openOids(fills);
    for (const { orderFills, generation: applied } of news.effects) {
      for (const { book } of onto) book.applyFills(orderFills);
      history.applyFills(orderFills);
      generation = applied;
      if (isLoading && applied % PAGE === 0) await nextTurn();
    }
    inventory.update(news.balances);
    hasBalances = true;
    const changes: OrderChange[] = [];
    pushChanges(changes, touched, null);
    const makers = new Set(fills.map(({ maker }) => maker));
    events.emit({
      type: 'generations',
      from,
      to: generation,
      makers,
      accounts: new Set([...makers, ...news.balances.map(({ account }) => account)]),
      changes,
      markets: new Set(fills.map(({ market }) => market)),
    });
  }

  /** Two overlapping reads would apply the same generations twice. */
  function oneAtATime(read: () => Promise<void>): Promise<void> {
    following ??= read().finally(() => {
      following = null;
    });
    return following;
  }

  /** Orders of these fills that are still open, each once. */
  function openOids(fills: readonly OrderFill[]): number[] {
    return [...new Set(fills.map(({ oid }) => oid))].filter((oid) => history.order(oid)?.state === 'open');
  }

  function pushChanges(changes: OrderChange[], oids: Iterable<number>, timeMs: number | null): void {
    for (const oid of oids) {
      const known = history.order(oid);
      if (known !== undefined) changes.push({ known, timeMs });
    }
  }

  function commit(rows: readonly OrderLogRow[]): void {
    if (rows.length === 0) return;
    const changes: OrderChange[] = [];
    for (const row of rows) {
      const touched = rowOids(row);
      committed.book.apply(row, planned.book);
      committed.agents.apply(row);
      history.apply(row, committed.book);
      lastRowMs = Math.max(lastRowMs, row.timeMs);
      if (row.signer !== null) lastAction.set(row.maker, row.timeMs);
      pushChanges(changes, touched, row.timeMs);
    }
    const touchedMarkets = new Set<number>();
    for (const { known } of changes) touchedMarkets.add(known.order.market);
    events.emit({ type: 'rows', rows, changes, markets: touchedMarkets });
  }

  /** Orders that a row opens, or that it closes or reduces while they are open, each once. */
  function rowOids({ effects }: OrderLogRow): ReadonlySet<number> {
    const oids = new Set<number>();
    for (const effect of effects) {
      if (effect.type === 'open') oids.add(effect.oid);
      else if (effect.type === 'close' || effect.type === 'reduce') {
        if (history.order(effect.oid)?.state === 'open') oids.add(effect.oid);
      }
    }
    return oids;
  }

  return {
    markets,
    inventory,
    history,
    events,
    noncesAfterMs: start.noncesAfterMs,
    committed: () => committed,
    planned: () => planned,
    lastActionMs: (maker) => lastAction.get(maker) ?? null,
    lastRowMs: () => lastRowMs,
    generation: () => generation,
    commit,
    rollback: () => {
      planned = copyOf(committed);
    },
    follow: (db) => oneAtATime(() => follow(db)),
    followAll: (db) => oneAtATime(() => followAll(db)),
  };
}

const copyOf = ({ book, agents }: BookState): BookState => ({ book: book.clone(), agents: agents.clone() });

/**
 * When applying fails half-way, a retry would apply rows twice, and continuing would skip rows, so every error becomes StateOutdatedError.
 */
async function applying(apply: () => void | Promise<void>): Promise<void> {
  try {
    await apply();
  } catch (cause) {
    throw new StateOutdatedError('what was read of the logs can not be applied', { cause });
  }
}
