/** Streams any number of rows as NDJSON or CSV, page by page: only one page is in memory, however slowly the client reads. */
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Context } from 'koa';
import { networkOf } from '../rate-limit.js';
import { createWindows } from '../orders/failures.js';
import { requestsOf } from './costs.js';
import { ApiError, badRequest } from '../errors.js';
import { queryLimit } from './params.js';

export const FORMATS = ['json', 'ndjson', 'csv'] as const;
type Format = (typeof FORMATS)[number];

const TYPES = { json: 'application/json', ndjson: 'application/x-ndjson', csv: 'text/csv' } as const;

/** The query's `format`, else what `Accept` prefers, else JSON. Throws 400 BAD_REQUEST for another format. */
export function formatOf(ctx: Context): Format {
  const { format } = ctx.query;
  if (format !== undefined && format !== '') {
    if (typeof format === 'string' && (FORMATS as readonly string[]).includes(format)) return format as Format;
    throw badRequest(`format must be one of ${FORMATS.join(', ')}`);
  }
  const accepted = ctx.accepts(TYPES.json, TYPES.ndjson, TYPES.csv);
  return FORMATS.find((one) => TYPES[one] === accepted) ?? 'json';
}

/** A flat or nested row; nested names are joined by a point in CSV. */
type Row = object;

/** Reads the page after a cursor, null for the first one, of at most so many rows; the cursor after it is null when there are no more rows. */
type ReadPage<C> = (after: C | null, limit: number) => Promise<{ rows: readonly Row[]; next: C | null }>;

/** Rows read at a time. */
const PAGE = 500;
/** For each request that an address has a minute: as many rows as take a point elsewhere. */
const ROWS_PER_REQUEST = 20;

/** Streams that may run at the same time: of one address, and altogether, without those that wait for rows of the next minute. */
interface StreamCaps {
  perAddress: number;
  total: number;
}

/** One of the places that there are altogether. */
interface Place {
  /** Leaves it to others. */
  give(): void;
  /** Takes it or, once it was given, another one; false while there is none, and from then on it goes before downloads that begin. */
  take(): boolean;
}

/** Counts streams that run, those that wait included. */
export interface RowStreams {
  /** Answers with all rows, or with the query's `limit` of them. Throws 400 BAD_REQUEST, and 429 RATE_LIMITED while too many others run. */
  send<C>(ctx: Context, format: Exclude<Format, 'json'>, columns: readonly string[], readPage: ReadPage<C>): void;
  running(): number;
}

const RETRY_SEC = 5;

/**
 * How long a download may take in all, and how many bytes the client must read of it in each span: places are few, and one that a client
 * could hold for next to nothing would be missing for the others.
 */
interface StreamPace {
  spanMs: number;
  leastBytes: number;
  totalMs: number;
}

const PACE: StreamPace = { spanMs: 30_000, leastBytes: 64 * 1024, totalMs: 30 * 60_000 };
/** How often both are checked. */
const LOOK_MS = 1_000;
const CHUNK_BYTES = 16 * 1024;

/** The clock, and a repeating timer that runs until the returned function is called. */
interface StreamTimers {
  nowMs(): number;
  every(ms: number, look: () => void): () => void;
  wait(ms: number): Promise<void>;
}

const TIMERS: StreamTimers = {
  nowMs: () => performance.now(),
  every(ms, look) {
    const timer = setInterval(look, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
  wait: (ms) => delay(ms, undefined, { ref: false }),
};

export function createRowStreams(
  caps: StreamCaps = { perAddress: 2, total: 8 },
  pace: StreamPace = PACE,
  timers: StreamTimers = TIMERS,
): RowStreams {
  const byAddress = new Map<string, number>();
  const rowsOf = createRowBudgets(timers.nowMs);
  let total = 0;
  /** Places that are taken, and those that downloads want to have again. */
  let [taken, wanted] = [0, 0];

  function createPlace(): Place {
    let state: 'taken' | 'given' | 'wanted' = 'taken';
    taken += 1;
    const leave = (): void => {
      if (state === 'taken') taken -= 1;
      if (state === 'wanted') wanted -= 1;
      state = 'given';
    };
    return {
      give: leave,
      take() {
        leave();
        state = taken < caps.total ? 'taken' : 'wanted';
        if (state === 'taken') taken += 1;
        else wanted += 1;
        return state === 'taken';
      },
    };
  }

  function begin(ctx: Context): { place: Place; end: () => void } {
    const address = networkOf(ctx.ip);
    const own = byAddress.get(address) ?? 0;
    if (own >= caps.perAddress || taken + wanted >= caps.total) {
      ctx.set('retry-after', `${RETRY_SEC}`);
      throw new ApiError(
        429,
        'RATE_LIMITED',
        `More than ${caps.perAddress} downloads of an address, or ${caps.total} of all`,
      );
    }
    byAddress.set(address, own + 1);
    total += 1;
    const place = createPlace();
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      total -= 1;
      place.give();
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left > 0) byAddress.set(address, left);
      else byAddress.delete(address);
    };
    return { place, end };
  }

  /**
   * Ends a download and its connection when the client reads it more slowly than the least pace, or when it takes too long in all. Read is
   * what the connection no longer buffers; the time for a page to come does not count.
   */
  function limit({ res }: Context, text: Readable, isReading: () => boolean): void {
    const startMs = timers.nowMs();
    /** When the present span began, and what was read until then. A span ends as soon as enough was read in it. */
    let span = { ms: startMs, bytes: 0 };
    const stop = timers.every(LOOK_MS, () => {
      const nowMs = timers.nowMs();
      const { bytesWritten = 0, writableLength = 0 } = res.socket ?? {};
      const bytes = bytesWritten - writableLength;
      if (bytes - span.bytes >= pace.leastBytes || isReading()) span = { ms: nowMs, bytes };
      if (nowMs - span.ms < pace.spanMs && nowMs - startMs < pace.totalMs) return;
      stop();
      text.destroy();
      res.destroy();
    });
    res.once('close', stop);
  }

  return {
    running: () => total,
    send(ctx, format, columns, readPage) {
      const most = queryLimit(ctx, Number.MAX_SAFE_INTEGER);
      const rows = rowsOf(ctx);
      const address = networkOf(ctx.ip);
      const { place, end } = begin(ctx);
      let isReading = false;
      const mayRead = (): boolean => {
        if (rows.spentSec(address) === 0) return place.take();
        // A download that waits out its minute reads nothing.
        place.give();
        return false;
      };
      const next: typeof readPage = async (after, limit) => {
        while (!text.destroyed && !mayRead()) await timers.wait(LOOK_MS);
        if (text.destroyed) return { rows: [], next: null };
        const page = await readPage(after, limit);
        rows.add(address, page.rows.length);
        return page;
      };
      const read: typeof readPage = async (after, limit) => {
        isReading = true;
        return next(after, limit).finally(() => (isReading = false));
      };
      const text = Readable.from(textOf(format, columns, { read, most }), {
        objectMode: false,
        highWaterMark: 64 * 1024,
      });
      text.once('close', end);
      limit(ctx, text, () => isReading);
      ctx.type = `${TYPES[format]}; charset=utf-8`;
      ctx.set(
        'Content-Disposition',
        `attachment; filename="${ctx.path.split('/').filter(Boolean).join('-')}.${format}"`,
      );
      ctx.body = text;
    },
  };
}

/**
 * Rows that an address is sent a minute: beyond them its downloads wait for the next one. They cost the server as much as those of any other
 * answer, and a client that reads fast would take all of its time.
 */
function createRowBudgets(nowMs: () => number): (ctx: Context) => ReturnType<typeof createWindows> {
  let known: { requests: number; rows: ReturnType<typeof createWindows> } | null = null;
  return (ctx) => {
    const requests = requestsOf(ctx);
    if (known?.requests !== requests) known = { requests, rows: createWindows(requests * ROWS_PER_REQUEST, nowMs) };
    return known.rows;
  };
}

async function* textOf<C>(
  format: Exclude<Format, 'json'>,
  columns: readonly string[],
  { read, most }: { read: ReadPage<C>; most: number },
): AsyncGenerator<Buffer> {
  if (format === 'csv') yield Buffer.from(`${columns.join(',')}\n`);
  let after: C | null = null;
  let left = most;
  do {
    const page: { rows: readonly Row[]; next: C | null } = await read(after, Math.min(PAGE, left));
    left -= page.rows.length;
    const lines = page.rows.map((row) => (format === 'csv' ? csvLine(row, columns) : JSON.stringify(row)));
    const bytes = Buffer.from(lines.length > 0 ? `${lines.join('\n')}\n` : '');
    // A connection reports progress per chunk only: small chunks show that a slow client is still reading.
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
    after = page.next;
  } while (after !== null && left > 0);
}

/** Columns are names, those of a nested value after a point. */
function csvLine(row: Row, columns: readonly string[]): string {
  return columns
    .map((column) => {
      const value = column
        .split('.')
        .reduce<unknown>((of, name) => (of as Record<string, unknown> | null)?.[name], row);
      if (value === null || value === undefined) return '';
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    })
    .join(',');
}

const streamsOf = new WeakMap<object, RowStreams>();

/** The downloads of one server, which its routes share. */
export function rowStreamsOf(server: object): RowStreams {
  const streams = streamsOf.get(server) ?? createRowStreams();
  streamsOf.set(server, streams);
  return streams;
}
