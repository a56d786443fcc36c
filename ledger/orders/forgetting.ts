/** Closed orders that nobody can ask for any more go from the compacted book: those without a fill beyond each maker's newest ones. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Address } from '../../core/types.js';
import { count } from '../db/aggregates.js';
import { chunks } from '../db/columns.js';
import { allOrFirstError, jsonItems, sendChange, sendForRows } from '../db/dialects.js';
import { groupBy } from '../db/lists.js';
import type { Stored } from '../db/tables.js';

/** An order that was closed, as it is stored; a maker's closed orders are in the order of their ends, then of their oids. */
export interface ClosedOrder {
  oid: number;
  maker: Address;
  closedMs: number;
  hasFill: boolean;
}

/** Where a maker's known closed orders begin: at and before it, only orders with a fill are left. */
interface Edge {
  closedMs: number;
  oid: number;
  /** Closed orders after it. */
  newer: number;
}

/**
 * Deletes closed orders, and remembers where it stopped, since to find that out it has to pass all that stay known. What it remembers
 * changes nothing but the time that it takes. It is right while only one writer stores orders, and each transaction commits.
 */
export interface Forgetting {
  /** Whether a maker's orders have to be passed first, which takes a while. */
  isNew(maker: Address): boolean;
  /** After `closed` were stored: deletes what is then beyond each of their makers' `keepClosed` newest closed orders. */
  forget(tx: Knex.Transaction, closed: readonly ClosedOrder[], keepClosed: number): Promise<void>;
  /** Remembers nothing more; for when a transaction failed. */
  reset(): void;
}

/** Most makers of which an edge is remembered; the one that closed nothing for longest goes first. */
const MAX_EDGES = 50_000;
/** Most orders of a maker before its edge that are deleted when it is looked for; there are some after a restore, or with fewer to keep. */
const FORGET_MAX = 5_000;
const PER_STATEMENT = 500;
/** Before all orders. */
const NOWHERE = { closedMs: -1, oid: -1 };

type Candidate = Pick<Stored<'folded_orders'>, 'oid' | 'has_fill'>;

export function createForgetting(): Forgetting {
  const edges = new Map<Address, Edge>();

  function remember(maker: Address, edge: Edge): void {
    edges.delete(maker);
    edges.set(maker, edge);
    if (edges.size > MAX_EDGES) edges.delete(edges.keys().next().value!);
  }

  /** Moves a maker's edge, which is known. Returns what is then at it or before it, but for what was before. */
  async function pass(
    tx: Knex.Transaction,
    {
      maker,
      edge,
      closed,
      keepClosed,
    }: { maker: Address; edge: Edge; closed: readonly ClosedOrder[]; keepClosed: number },
  ): Promise<number[]> {
    const isBefore = ({ closedMs, oid }: ClosedOrder): boolean =>
      closedMs < edge.closedMs || (closedMs === edge.closedMs && oid <= edge.oid);
    // A fill may end an order before others that were compacted already.
    const late = closed.filter(isBefore);
    const newer = edge.newer + closed.length - late.length;
    const passed = await passedOf(tx, maker, edge, Math.max(0, newer - keepClosed));
    const last = passed.at(-1);
    remember(maker, {
      closedMs: last?.closed_ms ?? edge.closedMs,
      oid: last?.oid ?? edge.oid,
      newer: newer - passed.length,
    });
    const unfilled = passed.filter((row) => row.has_fill === 0).map(({ oid }) => oid);
    return [...late.filter(({ hasFill }) => !hasFill).map(({ oid }) => oid), ...unfilled];
  }

  /** Looks for a maker's edge. Returns what is to be deleted at it and before it. */
  async function find(tx: Knex.Transaction, maker: Address, keepClosed: number): Promise<number[]> {
    const own = () => tx<Stored<'folded_orders'>>('folded_orders').where({ maker }).whereNotNull('closed_ms');
    const [first] = await sendForRows<{ oid: number; closed_ms: number }>(tx, FIRST_BEYOND, [maker, keepClosed]);
    if (first === undefined) {
      remember(maker, { ...NOWHERE, newer: await count(own()) });
      return [];
    }
    const { oid, closed_ms: closedMs } = first;
    const found = await sendForRows<Candidate>(tx, UNFILLED_BEFORE, [maker, closedMs, closedMs, oid, FORGET_MAX]);
    if (found.length < FORGET_MAX) remember(maker, { closedMs, oid, newer: keepClosed });
    return found.map((row) => row.oid);
  }

  return {
    isNew: (maker) => !edges.has(maker),
    async forget(tx, closed, keepClosed) {
      for (const part of chunks([...groupBy(closed, ({ maker }) => maker)], PER_STATEMENT)) {
        const oids = await allOrFirstError(
          part.map(([maker, own]) => {
            const edge = edges.get(maker);
            return edge === undefined
              ? find(tx, maker, keepClosed)
              : pass(tx, { maker, edge, closed: own, keepClosed });
          }),
        );
        await deleteUnfilled(tx, oids.flat());
      }
    },
    reset: () => edges.clear(),
  };
}

const FIRST_BEYOND =
  'select oid, closed_ms from folded_orders where maker = ? and closed_ms is not null ' +
  'order by closed_ms desc, oid desc limit 1 offset ?';

// The first condition is the one that the index serves.
const UNFILLED_BEFORE =
  'select oid, has_fill from folded_orders where maker = ? and closed_ms <= ? and (closed_ms, oid) <= (?, ?) and has_fill = 0 limit ?';

const NEXT_AFTER =
  'select oid, closed_ms, has_fill from folded_orders where maker = ? and closed_ms >= ? and (closed_ms, oid) > (?, ?) ' +
  'order by closed_ms, oid limit ?';

type Passed = Candidate & { closed_ms: number };

async function passedOf(tx: Knex.Transaction, maker: Address, edge: Edge, excess: number): Promise<Passed[]> {
  if (excess === 0) return [];
  const { closedMs, oid } = edge;
  return sendForRows<Passed>(tx, NEXT_AFTER, [maker, closedMs, closedMs, oid, excess]);
}

async function deleteUnfilled(tx: Knex.Transaction, oids: readonly number[]): Promise<void> {
  const items = jsonItems(tx);
  const among = `(select cast(cast(value as text) as bigint) from ${items})`;
  for (const part of chunks(oids, PER_STATEMENT)) {
    // Checks all stored fills, also those after the compacted generation. A later one can only come of a block that is read again, since no live
    // curve has these orders: orders of fills that were reversed stay (rewinding.ts), and others are restored (forgotten-orders.ts).
    const filled = await sendForRows<{ oid: number }>(
      tx,
      `select distinct oid from order_fills where oid in ${among}`,
      [JSON.stringify(part)],
    );
    const kept = new Set(filled.map(({ oid }) => oid));
    if (kept.size > 0)
      await sendChange(tx, `update folded_orders set has_fill = 1 where oid in ${among}`, [JSON.stringify([...kept])]);
    const gone = part.filter((oid) => !kept.has(oid));
    await sendChange(tx, `delete from folded_orders where oid in ${among}`, [JSON.stringify(gone)]);
    await nextTurn();
  }
}
