import { CurvebookError } from '../errors.js';
import type { ReadClient } from '../read/client.js';
import type { Stream, StreamSchemas } from './client.js';

export type OrderRow = StreamSchemas['OrderRow'];
export type UserFill = StreamSchemas['UserFill'];

/** A maker's open orders and fills as they are known now. */
export interface OrderState {
  /** False from the loss of a connection until the open orders were read over a new one, and before the first; `open` is then as last known. */
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
 * snapshot are read by query. More than 4,000 fills of one block can't all be read so: `onError` is then told CurvebookError `FILLS_LEFT_OUT`. Orders survive disconnects, so nothing is cancelled or placed again. Returns a function that ends it.
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

  /** What is known may be wrong from now on, and updates wait until it is read again. */
  function unknow(): void {
    reading.abort();
    waiting = [];
    closed.clear();
    tell();
  }

  async function readOpen(): Promise<void> {
    unknow();
    const mine = new AbortController();
    reading = mine;
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

  /** Asks until there is an answer: fills that were left out now would never be told, since later snapshots begin after them. */
  async function fillsOf(startTime: number, endTime: number, reversed = false): Promise<UserFill[]> {
    while (!isOver) {
      try {
        const order = reversed ? { reversed } : {};
        return await read.info<UserFill[]>({ type: 'userFillsByTime', user, startTime, endTime, ...order });
      } catch (error) {
        if (isOver) break;
        listeners.onError?.(error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    return [];
  }

  /** Reads, page by page, the fills between the newest known one and a snapshot that has no room for all new ones. */
  async function missed(sinceMs: number, untilMs: number): Promise<void> {
    for (let from = sinceMs; !isOver && from <= untilMs;) {
      const page = await fillsOf(from, untilMs);
      const last = page.reduce((latest, { time }) => Math.max(latest, time), from);
      const isFull = page.length >= SNAPSHOT_FILLS;
      // The next page begins with the same time, so more fills of one time than a page has room for are read from its end.
      if (isFull && last === from) page.push(...(await restOf(from, page)));
      add(page);
      if (!isFull) return;
      from = last > from ? last : from + 1;
    }
  }

  /** The newest fills of a time of which `first` are the oldest. Those of one block have one time. */
  async function restOf(timeMs: number, first: readonly UserFill[]): Promise<UserFill[]> {
    const known = new Set(first.map(({ tid }) => tid));
    const newest = await fillsOf(timeMs, timeMs, true);
    if (newest.length >= SNAPSHOT_FILLS && newest.every(({ tid }) => !known.has(tid))) {
      const most = 2 * SNAPSHOT_FILLS;
      listeners.onError?.(new CurvebookError('FILLS_LEFT_OUT', `of time ${timeMs} only ${most} fills can be read`));
    }
    return newest;
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
      unknow,
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
