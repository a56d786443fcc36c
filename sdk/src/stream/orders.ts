import type { ReadClient } from '../read/client.js';
import type { Stream, StreamSchemas } from './client.js';

export type OrderRow = StreamSchemas['OrderRow'];
export type UserFill = StreamSchemas['UserFill'];

/** A maker's open orders and fills as they are known now. */
export interface OrderState {
  /**
   * False after each new connection until the open orders were read. It stays true while a connection is lost; the stream's `onState` tells of
   * that.
   */
  isComplete: boolean;
  /** By order id. */
  open: ReadonlyMap<number, OrderRow>;
}

export interface OrderListeners {
  onOrders?(state: OrderState): void;
  /** Each fill once, oldest first, over all reconnects. */
  onFills?(fills: readonly UserFill[]): void;
  onError?(error: unknown): void;
}

/** Fills that a subscription begins with, and that one query answers. */
const SNAPSHOT_FILLS = 2_000;
/** Fills whose numbers are remembered, so that none comes twice. */
const REMEMBERED_FILLS = 20_000;
const RETRY_MS = 1_000;

/**
 * Follows the orders and fills of one account over reconnects, as the guide to the order interface describes. It subscribes to updates, reads the
 * open orders, and then applies the updates that arrived meanwhile. Fills are told once per `tid`; those that are older than the subscription's
 * snapshot are read by query. Orders survive disconnects, so nothing is cancelled or placed again. Returns a function that ends it.
 */
export function followOrders(stream: Stream, read: ReadClient, user: string, listeners: OrderListeners): () => void {
  let open = new Map<number, OrderRow>();
  /** Updates since the subscription, while the open orders are being read; null when they are known. */
  let waiting: StreamSchemas['OrderUpdate'][] | null = [];
  let reading = new AbortController();
  let isOver = false;
  /** Orders that were closed since the open ones were asked for: none of them opens again. */
  const closed = new Set<number>();
  const seen = new Set<number>();
  let newestFillMs: number | null = null;
  let filling: Promise<void> = Promise.resolve();

  const tell = (): void => listeners.onOrders?.({ isComplete: waiting === null, open });

  function apply(updates: readonly StreamSchemas['OrderUpdate'][]): void {
    for (const { order, status } of updates) {
      if (status !== 'open') {
        closed.add(order.oid);
        open.delete(order.oid);
      } else if (!closed.has(order.oid)) open.set(order.oid, smaller(open.get(order.oid), order));
    }
  }

  async function readOpen(): Promise<void> {
    reading.abort();
    const mine = new AbortController();
    reading = mine;
    waiting = [];
    closed.clear();
    tell();
    while (!isOver && !mine.signal.aborted) {
      try {
        const rows = await read.info<OrderRow[]>({ type: 'openOrders', user }, mine.signal);
        if (isOver || mine.signal.aborted) return;
        open = new Map(rows.map((row) => [row.oid, row]));
        apply(waiting ?? []);
        waiting = null;
        return tell();
      } catch (error) {
        if (isOver || mine.signal.aborted) return;
        listeners.onError?.(error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Those that are new, told once. */
  function add(fills: readonly UserFill[]): void {
    const fresh = fills.filter(({ tid }) => !seen.has(tid)).sort((a, b) => a.time - b.time || a.tid - b.tid);
    for (const { tid, time } of fresh) {
      seen.add(tid);
      newestFillMs = Math.max(newestFillMs ?? 0, time);
    }
    for (const tid of seen) {
      if (seen.size <= REMEMBERED_FILLS) break;
      seen.delete(tid);
    }
    if (fresh.length > 0) listeners.onFills?.(fresh);
  }

  /**
   * Reads, page by page, the fills between the newest known one and a snapshot that has no room for all new ones. A query that fails is repeated: what
   * was left out now would never be told, since later snapshots begin after it.
   */
  async function missed(sinceMs: number, untilMs: number): Promise<void> {
    for (let from = sinceMs; !isOver;) {
      let page: UserFill[];
      try {
        page = await read.info<UserFill[]>({ type: 'userFillsByTime', user, startTime: from, endTime: untilMs });
      } catch (error) {
        if (isOver) return;
        listeners.onError?.(error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        continue;
      }
      add(page);
      const last = page.reduce((latest, { time }) => Math.max(latest, time), from);
      if (page.length < SNAPSHOT_FILLS || last <= from) return;
      from = last;
    }
  }

  /** Runs jobs one after the other, so that fills stay in order. */
  function enqueue(job: () => Promise<void> | void): void {
    filling = filling.then(async () => {
      if (!isOver) await job();
    });
    filling = filling.catch((error: unknown) => listeners.onError?.(error));
  }

  const ends = [
    stream.subscribe(
      { type: 'orderUpdates', user },
      (updates) => {
        if (waiting !== null) return void waiting.push(...updates);
        apply(updates);
        tell();
      },
      () => void readOpen(),
    ),
    stream.subscribe({ type: 'userFills', user }, ({ isSnapshot, fills }) => {
      enqueue(async () => {
        const oldest = fills.reduce((least, { time }) => Math.min(least, time), Number.MAX_SAFE_INTEGER);
        const hasGap = isSnapshot === true && fills.length >= SNAPSHOT_FILLS && newestFillMs !== null;
        if (hasGap && newestFillMs !== null && oldest > newestFillMs) await missed(newestFillMs, oldest);
        add(fills);
      });
    }),
  ];
  return () => {
    isOver = true;
    reading.abort();
    ends.forEach((end) => end());
  };
}

/** The row with the smaller size. Fills only reduce an order, so that row is newer, in whatever order the rows arrived. Sizes are plain decimals. */
function smaller(known: OrderRow | undefined, next: OrderRow): OrderRow {
  return known !== undefined && isLess(known.sz, next.sz) ? known : next;
}

function isLess(a: string, b: string): boolean {
  const [wholeA = '', partA = ''] = a.split('.');
  const [wholeB = '', partB = ''] = b.split('.');
  const digits = Math.max(partA.length, partB.length);
  return BigInt(wholeA + partA.padEnd(digits, '0')) < BigInt(wholeB + partB.padEnd(digits, '0'));
}
