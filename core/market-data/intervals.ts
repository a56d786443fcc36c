/** The intervals that candles are kept for, and where each one begins. All of them are counted in UTC. */

export const INTERVALS = [
  ...(['1m', '3m', '5m', '15m', '30m', '1h', '2h', '4h', '8h', '12h'] as const),
  ...(['1d', '3d', '1w', '1M'] as const),
] as const;

export type Interval = (typeof INTERVALS)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Length of all intervals but the month, whose length changes. */
const LENGTH_MS: Readonly<Record<Exclude<Interval, '1M'>, number>> = {
  '1m': MINUTE_MS,
  '3m': 3 * MINUTE_MS,
  '5m': 5 * MINUTE_MS,
  '15m': 15 * MINUTE_MS,
  '30m': 30 * MINUTE_MS,
  '1h': HOUR_MS,
  '2h': 2 * HOUR_MS,
  '4h': 4 * HOUR_MS,
  '8h': 8 * HOUR_MS,
  '12h': 12 * HOUR_MS,
  '1d': DAY_MS,
  '3d': 3 * DAY_MS,
  '1w': 7 * DAY_MS,
};

/** The first of January 1970 was a Thursday; weeks begin on Mondays. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/** For each interval the shorter one whose candles make up its own. Candles of a minute come from trades. */
export const PART_OF: Readonly<Record<Exclude<Interval, '1m'>, Interval>> = {
  '3m': '1m',
  '5m': '1m',
  '15m': '5m',
  '30m': '15m',
  '1h': '30m',
  '2h': '1h',
  '4h': '2h',
  '8h': '4h',
  '12h': '4h',
  '1d': '12h',
  '3d': '1d',
  '1w': '1d',
  '1M': '1d',
};

export const isInterval = (text: string): text is Interval => (INTERVALS as readonly string[]).includes(text);

/** The latest time that a calendar date can have. */
const LATEST_MS = 8_640_000_000_000_000;

/** When the interval that contains a time began. Times are Unix milliseconds, from 0 on; a month is never later than the last one that has a date. */
export function openOf(interval: Interval, timeMs: number): number {
  if (interval === '1M') {
    const date = new Date(Math.min(timeMs, LATEST_MS));
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
  }
  const length = LENGTH_MS[interval];
  const origin = interval === '1w' ? FIRST_MONDAY_MS - length : 0;
  return timeMs - ((timeMs - origin) % length);
}

/** When the interval after the one that began at `openMs` begins. */
export function nextOpen(interval: Interval, openMs: number): number {
  if (interval !== '1M') return openMs + LENGTH_MS[interval];
  const date = new Date(openMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** When the interval began that is `count` intervals before the one that began at `openMs`; never before 1970. */
export function opensBefore(interval: Interval, openMs: number, count: number): number {
  if (interval !== '1M') return Math.max(openOf(interval, 0), openMs - count * LENGTH_MS[interval]);
  const date = new Date(openMs);
  return Math.max(0, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - count));
}
