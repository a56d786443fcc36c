import { CurvebookError } from '../errors.js';
import type { ReadClient } from '../read/client.js';
import type { Stream, StreamSchemas } from './client.js';
import { createGuard } from './guard.js';
import { createRecent } from './recent.js';

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
  /** Called with each query that failed and each error that a listener throws; neither ends anything. */
  onError?(error: unknown): void;
}

/** Fills that a subscription begins with, and that one query answers. */
const SNAPSHOT_FILLS = 2_000;
/** Fills whose numbers are remembered, so that none comes twice, and closed orders, so that none opens again. */
const REMEMBERED = 20_000;
const RETRY_MS = 1_000;

/**
 * Follows the orders and fills of one account over reconnects, as the guide to the order interface describes. It subscribes to updates, reads the
 * open orders, and then applies the updates that arrived meanwhile. Fills are told once per `tid`; those that are older than the subscription's
 * snapshot are read by query. More than 4,000 fills of one block can't all be read so: `onError` is then told CurvebookError `FILLS_LEFT_OUT`. Orders survive disconnects, so nothing is cancelled or placed again. Returns a function that ends it.
 */
export function followOrders(stream: Stream, read: ReadClient, user: string, listeners: OrderListeners): () => void {
  const over = new AbortController();
  const isOver = (): boolean => over.signal.aborted;
  const guard = createGuard((error) => listeners.onError?.(error), isOver);
  let open = new Map<number, OrderRow>();
  /** Open orders by the updates since the subscription, while all of them are being read; null when they are known. */
  let waiting: Map<number, OrderRow> | null = new Map();
  let reading = new AbortController();
  /** Orders that were closed since the open ones were asked for: none of them opens again. */
  const closed = createRecent<number>(REMEMBERED);
  const seen = createRecent<number>(REMEMBERED);
  /** Null before the first snapshot. All fills up to this time are told, but for those before that snapshot. */
  let newestFillMs: number | null = null;
  let filling: Promise<void> = Promise.resolve();

  function call(listener: () => unknown): void {
    if (!isOver()) guard.call(listener);
  }

  function complain(error: unknown): void {
    if (!isOver()) guard.tell(error);
  }

  const tell = (): void => call(() => listeners.onOrders?.({ isComplete: waiting === null, open }));

  function apply(updates: readonly StreamSchemas['OrderUpdate'][], to: Map<number, OrderRow>): void {
    for (const { order, status } of updates) {
      if (status === 'open') put(order, to);
      else {
        to.delete(order.oid);
        closed.add(order.oid);
      }
    }
  }

  function put(row: OrderRow, to: Map<number, OrderRow>): void {
    if (!closed.has(row.oid)) to.set(row.oid, smaller(to.get(row.oid), row));
  }

  /** What is known may be wrong from now on, and updates are kept apart until it is read again. The signal aborts when that reading is of no use any more. */
  function unknow(): AbortSignal {
    reading.abort();
    reading = new AbortController();
    const { signal } = reading;
    waiting = new Map();
    closed.clear();
    tell();
    return signal;
  }

  async function readOpen(): Promise<void> {
    const rows = await ask<OrderRow>({ type: 'openOrders', user }, unknow());
    if (rows === null) return;
    const updated = waiting ?? new Map<number, OrderRow>();
    open = new Map();
    for (const row of [...rows, ...updated.values()]) put(row, open);
    waiting = null;
    tell();
  }

  /** Asks until there is an answer; null once the signal has aborted. */
  async function ask<T>(query: { type: string } & Record<string, unknown>, signal: AbortSignal): Promise<T[] | null> {
    while (!signal.aborted) {
      try {
        const rows = await read.info(query, signal);
        if (signal.aborted) break;
        if (!isList(rows)) throw new CurvebookError('HTTP_ERROR', `the answer to ${query.type} is no list`);
        return rows as T[];
      } catch (error) {
        if (signal.aborted) break;
        complain(error);
        await sleep(RETRY_MS, signal);
      }
    }
    return null;
  }

  /** Those that are new, told once. They are in the order of the chain where they are of one time. */
  function add(fills: readonly UserFill[]): void {
    const fresh = fills.filter(({ tid }) => seen.add(tid)).sort((a, b) => a.time - b.time);
    for (const { time } of fresh) newestFillMs = Math.max(newestFillMs ?? 0, time);
    if (fresh.length > 0) call(() => listeners.onFills?.(fresh));
  }

  /** Oldest first, or reversed. Asks until there is an answer: fills that were left out now would never be told, since later snapshots begin after them. */
  async function fillsOf(startTime: number, endTime: number, reversed = false): Promise<UserFill[]> {
    const order = reversed ? { reversed } : {};
    const query = { type: 'userFillsByTime', user, startTime, endTime, ...order };
    return (await ask<UserFill>(query, over.signal)) ?? [];
  }

  /** Reads, page by page, the fills between the newest known one and a snapshot that has no room for all new ones. */
  async function missed(sinceMs: number, untilMs: number): Promise<void> {
    for (let from = sinceMs; !isOver() && from <= untilMs;) {
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

  /** The newest fills of a time of which `first` are the oldest; some may be among both. Those of one block have one time. */
  async function restOf(timeMs: number, first: readonly UserFill[]): Promise<UserFill[]> {
    const known = new Set(first.map(({ tid }) => tid));
    const newest = await fillsOf(timeMs, timeMs, true);
    if (newest.length >= SNAPSHOT_FILLS && newest.every(({ tid }) => !known.has(tid))) {
      const most = 2 * SNAPSHOT_FILLS;
      complain(new CurvebookError('FILLS_LEFT_OUT', `of time ${timeMs} only ${most} fills can be read`));
    }
    return newest.reverse();
  }

  /** Runs jobs one after the other, so that fills stay in order. */
  function enqueue(job: () => Promise<void>): void {
    filling = filling.then(() => (isOver() ? undefined : job())).catch(complain);
  }

  async function addAfterGap(isSnapshot: boolean, fills: readonly UserFill[]): Promise<void> {
    const oldest = fills.reduce((least, { time }) => Math.min(least, time), Number.MAX_SAFE_INTEGER);
    const isFull = isSnapshot && fills.length >= SNAPSHOT_FILLS;
    // At one time with the newest known one, it may begin within a block of which a part is known.
    if (isFull && newestFillMs !== null && oldest >= newestFillMs) await missed(newestFillMs, oldest);
    // A snapshot begins with the newest.
    add(isSnapshot ? [...fills].reverse() : fills);
    // Of an account without fills the first snapshot has all: whatever comes later is new.
    if (isSnapshot) newestFillMs ??= 0;
  }

  const ends: (() => void)[] = [];
  function end(): void {
    over.abort();
    reading.abort();
    ends.forEach((one) => one());
  }

  const onUpdates = (updates: readonly StreamSchemas['OrderUpdate'][]): void => {
    apply(updates, waiting ?? open);
    if (waiting === null) tell();
  };
  const onResume = (): void => void readOpen().catch(complain);
  ends.push(stream.subscribe({ type: 'orderUpdates', user }, onUpdates, onResume, () => void unknow()));
  try {
    const listening = stream.subscribe({ type: 'userFills', user }, ({ isSnapshot, fills }) => {
      enqueue(() => addAfterGap(isSnapshot === true, fills));
    });
    ends.push(listening);
  } catch (error) {
    end();
    throw error;
  }
  return end;
}

const isList = (value: unknown): value is object[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null);

/** Ends early when the signal aborts, and leaves no timer then. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
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
