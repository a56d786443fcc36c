import { setImmediate as nextTurn } from 'node:timers/promises';
import { createAgents, type Agents } from '../../core/book/agents.js';
import type { Book } from '../../core/book.js';
import { createBook, type CompactedBook } from '../../core/book/create-book.js';
import type { Address, Market, OrderFill, OrderLogRow } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import { LogCompactedError } from '../../ledger/errors.js';
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

/** Rows read at a time. SQLite answers at once, so that between two pages somebody must give way: probes are answered while a long log is read. */
const PAGE = 1_000;

/** The open orders and the agents after some row of the order log. */
export interface BookState {
  book: Book;
  agents: Agents;
}

/** Everything the gateway holds in memory: projections of the order log and the ledger log, nothing of its own. */
export interface GatewayState {
  /** Grows as markets are listed; the same array for life. */
  readonly markets: readonly Market[];
  readonly inventory: Inventory;
  readonly history: OrderHistory;
  readonly events: Events;
  /** Signed actions with a nonce up to this are refused, since the log that would know them was lost; 0 when none was. */
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
  /** Applies the generations that became durable since the last call; true when there were any. */
  follow: (db: Db) => Promise<boolean>;
}

/** Replays both logs from the compacted book on, or from their beginnings while there is none. */
export async function loadState(db: Db): Promise<GatewayState> {
  const state = createState(await readTx(db, readStart));
  await state.follow(db);
  await readRows(db, state);
  state.rollback();
  return state;
}

/** Applies the durable rows of the order log that the state lacks. */
export async function readRows(db: Db, state: GatewayState): Promise<void> {
  for (;;) {
    const after = state.committed().book.lastOrderSeq();
    const rows = await readOrderRows(db.reads, { after, limit: PAGE });
    // The owner of the log has seen all that it compacts; a standby that has not, because it slept for long, must start again.
    if (rows[0] !== undefined && rows[0].orderSeq !== after + 1) throw new LogCompactedError(`order row ${after + 1}`);
    state.commit(rows);
    if (rows.length < PAGE) return;
    await nextTurn();
  }
}

/** Where the state begins: what the compacted part of the logs came to. */
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
 * What the ledger log has beyond a generation, and the balances after the last of it, in one view of the database: those that changed,
 * or all of them when none were read before.
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
  let following: Promise<boolean> | null = null;

  async function follow(db: Db): Promise<boolean> {
    const news = await readTx(db, (tx) => readNews(tx, generation, hasBalances));
    if (news.effects.length === 0) return false;
    // Once it is loaded, no await from here on: readers see a generation whole or not at all.
    const isLoading = !hasBalances;
    const from = generation + 1;
    markets.push(...news.markets.slice(markets.length));
    const fills = news.effects.flatMap(({ orderFills }) => orderFills);
    const touched = openOids(fills);
    for (const { orderFills, generation: applied } of news.effects) {
      committed.book.applyFills(orderFills);
      planned.book.applyFills(orderFills);
      history.applyFills(orderFills);
      generation = applied;
      if (isLoading && applied % PAGE === 0) await nextTurn();
    }
    inventory.update(news.balances);
    hasBalances = true;
    const changes: OrderChange[] = [];
    pushChanges(changes, touched, null);
    events.emit({
      type: 'generations',
      from,
      to: generation,
      makers: new Set(fills.map(({ maker }) => maker)),
      changes,
      markets: new Set(fills.map(({ market }) => market)),
    });
    return true;
  }

  /** Filled orders that are open as yet, each once. */
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
    // One at a time: two overlapping reads would apply the same generations twice.
    follow: (db) => {
      following ??= follow(db).finally(() => {
        following = null;
      });
      return following;
    },
  };
}

const copyOf = ({ book, agents }: BookState): BookState => ({ book: book.clone(), agents: agents.clone() });
