import { createBook } from '../../core/book.js';
import type { Book } from '../../core/book.js';
import type { Address, Market, OrderLogRow } from '../../core/types.js';
import { readTx } from '../../ledger/db.js';
import { readBalances, readGenerationEffects, readMarkets } from '../../ledger/ledger-log.js';
import { readOrderRows } from '../../ledger/order-log.js';
import type { BalanceRow, Db, GenerationEffects, Queryable } from '../../ledger/types.js';
import { createHistory } from './history.js';
import type { OrderHistory } from './history.js';
import { createInventory } from './inventory.js';
import type { Inventory } from './inventory.js';

/** Rows read at a time. */
const PAGE = 1_000;

/** Everything the gateway holds in memory: projections of the order log and the ledger log, nothing of its own. */
export interface GatewayState {
  /** Grows as markets are listed; the same array for life. */
  readonly markets: readonly Market[];
  readonly inventory: Inventory;
  readonly history: OrderHistory;
  /** Durable rows only. */
  committed: () => Book;
  /** Runs ahead of `committed` within one group commit. */
  planned: () => Book;
  lastActionMs: (maker: Address) => number | null;
  lastRowMs: () => number;
  generation: () => number;
  commit: (rows: readonly OrderLogRow[]) => void;
  /** Makes `planned` equal to `committed`. */
  rollback: () => void;
  /** Applies the generations that became durable since the last call; true when there were any. */
  follow: (db: Db) => Promise<boolean>;
}

/** Folds both logs from their beginnings. */
export async function loadState(db: Db): Promise<GatewayState> {
  const state = createState();
  await state.follow(db);
  for (;;) {
    const rows = await readOrderRows(db.knex, { after: state.committed().lastOrderSeq(), limit: PAGE });
    state.commit(rows);
    if (rows.length < PAGE) break;
  }
  state.rollback();
  return state;
}

interface LedgerNews {
  markets: Market[];
  effects: GenerationEffects[];
  balances: BalanceRow[];
}

/** What the ledger log has beyond a generation, and the balances after the last of it, in one view of the database. */
async function readNews(q: Queryable, after: number): Promise<LedgerNews> {
  const effects: GenerationEffects[] = [];
  for (;;) {
    const page = await readGenerationEffects(q, { after: effects.at(-1)?.generation ?? after, limit: PAGE });
    effects.push(...page);
    if (page.length < PAGE) break;
  }
  if (effects.length === 0) return { markets: [], effects, balances: [] };
  return { markets: await readMarkets(q), effects, balances: await readBalances(q, {}) };
}

function createState(): GatewayState {
  const markets: Market[] = [];
  const inventory = createInventory();
  const history = createHistory(markets);
  const lastAction = new Map<Address, number>();
  const committed = createBook(markets);
  let planned = committed.clone();
  let lastRowMs = 0;
  let generation = 0;
  let following: Promise<boolean> | null = null;

  async function follow(db: Db): Promise<boolean> {
    const news = await readTx(db, (tx) => readNews(tx, generation));
    if (news.effects.length === 0) return false;
    // No await from here on: readers see a generation whole or not at all.
    markets.push(...news.markets.slice(markets.length));
    for (const { orderFills, generation: applied } of news.effects) {
      committed.applyFills(orderFills);
      planned.applyFills(orderFills);
      history.applyFills(orderFills);
      generation = applied;
    }
    inventory.replace(news.balances);
    return true;
  }

  function commit(rows: readonly OrderLogRow[]): void {
    for (const row of rows) {
      committed.apply(row);
      history.apply(row);
      lastRowMs = Math.max(lastRowMs, row.timeMs);
      if (row.signer !== null) lastAction.set(row.maker, row.timeMs);
    }
  }

  return {
    markets,
    inventory,
    history,
    committed: () => committed,
    planned: () => planned,
    lastActionMs: (maker) => lastAction.get(maker) ?? null,
    lastRowMs: () => lastRowMs,
    generation: () => generation,
    commit,
    rollback: () => {
      planned = committed.clone();
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
