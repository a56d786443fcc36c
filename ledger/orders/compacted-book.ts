/**
 * The compacted book: the state of the order log after the rows that compaction has removed. compaction.ts moves it forward, and every
 * replay of the order log begins with it.
 */
import type { CompactedBook } from '../../core/book/create-book.js';
import type { Agent } from '../../core/book/agents.js';
import type { OrderLife } from '../../core/book/order-life.js';
import type { Address, OpenOrder } from '../../core/types.js';
import { fromColumn } from '../db/columns.js';
import type { MarketProgress, Queryable } from '../types.js';
import type { Stored } from '../db/tables.js';

/** The state includes the order log up to `orderSeq` and the ledger log up to `generation`; zeros before the first compaction. */
export interface CompactionPosition {
  orderSeq: number;
  generation: number;
  /** Highest oid that the compacted rows opened, and time of the newest of them. */
  oid: number;
  timeMs: number;
  /** The book gives cuts from this generation on: `generation`, or a later one while a reversal has taken the book back to `generation`. */
  cutGeneration: number;
}

/**
 * An order that compaction keeps: each open one, each with a fill, and each maker's newest closed ones. The end of a filled order is the
 * time of the block that filled it.
 */
export type CompactedOrder = OrderLife;

const START: CompactionPosition = { orderSeq: 0, generation: 0, oid: 0, timeMs: 0, cutGeneration: 0 };

export async function readCompactionPosition(q: Queryable): Promise<CompactionPosition> {
  const row = await q('fold_position').where({ id: 1 }).first();
  if (row === undefined) return START;
  return {
    orderSeq: row.order_seq,
    generation: row.generation,
    oid: row.oid,
    timeMs: row.time_ms,
    cutGeneration: row.cut_generation,
  };
}

/** Reads the compacted book; `position` must be read in the same transaction. */
export async function readCompactedBook(q: Queryable, position: CompactionPosition): Promise<CompactedBook> {
  const open = await q('folded_orders').where({ state: 'open' }).orderBy('oid').select();
  const makers = await readMakers(q);
  const signers = await q('folded_signers').select<{ signer: Address; nonces: string }[]>();
  return {
    orderSeq: position.orderSeq,
    oid: position.oid,
    orders: open.map((row) => toCompactedOrder(row).order),
    nonces: new Map(signers.map(({ signer, nonces }) => [signer, decodeNonces(nonces)])),
    armed: new Map(makers.flatMap((row) => (row.armed_ms === null ? [] : [[row.maker, row.armed_ms] as const]))),
    triggers: new Map(
      makers.flatMap((row) =>
        row.trigger_day === null ? [] : [[row.maker, { day: row.trigger_day, count: row.trigger_count }] as const],
      ),
    ),
  };
}

/** State beside the book that only the gateway needs. */
export interface CompactedAccounts {
  /** Live approvals, oldest first. */
  agents: Agent[];
  /** Every address that is or was an agent. */
  everAgents: Address[];
  /** Time of each maker's newest signed action. */
  lastActionMs: Map<Address, number>;
}

export async function readCompactedAccounts(q: Queryable): Promise<CompactedAccounts> {
  const agents = await q('folded_agents').orderBy(['approved_seq', 'address']).select();
  const makers = await readMakers(q);
  return {
    agents: agents.filter(({ is_live }) => is_live !== 0).map(toAgent),
    everAgents: agents.map(({ address }) => address),
    lastActionMs: new Map(
      makers.flatMap((row) => (row.last_action_ms === null ? [] : [[row.maker, row.last_action_ms] as const])),
    ),
  };
}

/** Every open order and the newest `maxClosed` closed ones of each maker, by oid. */
export async function readKnownOrders(q: Queryable, maxClosed: number): Promise<CompactedOrder[]> {
  const rows = await q('folded_orders').where({ state: 'open' }).select();
  const makers = await q('folded_orders').distinct<{ maker: Address }[]>('maker');
  for (const { maker } of makers) {
    const closed = await q<Stored<'folded_orders'>>('folded_orders')
      .where({ maker })
      .whereNotNull('closed_ms')
      .orderBy([
        { column: 'closed_ms', order: 'desc' },
        { column: 'oid', order: 'desc' },
      ])
      .limit(maxClosed)
      .select();
    rows.push(...closed);
  }
  return rows.sort((a, b) => a.oid - b.oid).map(toCompactedOrder);
}

/** Fill counter and volumes of each market that had a fill up to a generation. */
export async function readProgressAt(
  q: Queryable,
  markets: readonly { index: number }[],
  generation: number,
): Promise<MarketProgress[]> {
  const found: MarketProgress[] = [];
  for (const { index } of markets) {
    const row = await q('market_progress')
      .where({ market: index })
      .where('generation', '<=', generation)
      .orderBy('generation', 'desc')
      .first();
    if (row === undefined) continue;
    found.push({
      market: index,
      fillSeq: row.fill_seq,
      askVolumeUnits: fromColumn(row.ask_volume_units),
      bidVolumeUnits: fromColumn(row.bid_volume_units),
    });
  }
  return found;
}

export function toCompactedOrder(row: Stored<'folded_orders'>): CompactedOrder {
  const order: OpenOrder = {
    oid: row.oid,
    maker: row.maker,
    market: row.market,
    side: row.side,
    priceTicks: fromColumn(row.price_ticks),
    sizeLots: fromColumn(row.size_lots),
    filledUnits: fromColumn(row.filled_units),
    tif: row.tif,
    cloid: row.cloid,
    placedMs: row.placed_ms,
  };
  return { order, state: row.state, closedMs: row.closed_ms };
}

export function decodeNonces(text: string): number[] {
  const nonces: unknown = JSON.parse(text);
  const isWhole = (nonce: unknown): nonce is number => Number.isSafeInteger(nonce);
  if (Array.isArray(nonces) && nonces.every(isWhole)) return nonces;
  throw new SyntaxError('the nonces of a compacted signer are not a list of integers');
}

function toAgent(row: Stored<'folded_agents'>): Agent {
  const { master, name, address, since_ms: sinceMs, valid_until_ms: validUntilMs } = row;
  return { master, name, address, sinceMs, validUntilMs };
}

async function readMakers(q: Queryable): Promise<Stored<'folded_makers'>[]> {
  return await q('folded_makers').orderBy('maker').select();
}
