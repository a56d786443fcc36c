/** A line of bench:scale: our CPU time for one thing, that of the database beside it, and its bar. */
import type { Row } from '../gateway/measure.js';

/** Names under which the model of docs/scale.md uses what was measured. */
export type Figure =
  | 'single'
  | 'lone'
  | 'place50'
  | 'modify50'
  | 'cancel50'
  | 'limits'
  | 'fill'
  | 'fillAlone'
  | 'orderRowBytes'
  | 'batchBytes'
  | 'fillBytes'
  | 'heapPerOrder'
  | 'quietScan'
  | 'listedMarket'
  | 'postRound'
  | 'postMarket'
  | 'scanBytes'
  | 'publicationBytes';

export interface ScaleRow extends Row {
  figure: Figure | null;
  /** CPU milliseconds of PostgreSQL's processes for the same; null where it is not a time. */
  databaseMs: number | null;
}

/** Of signatures, by an idle core of the machine for which the bars in milliseconds are: so each bar also holds as a multiple of bare work of the same run. */
export const RECOVERIES_PER_MS = 15;

/**
 * What the bars were set against, in the unit of the row, on PostgreSQL with all roles in one process: an order log with a row per order, limits
 * that are read from the database, and fills that are attributed whole.
 */
const BEFORE: Partial<Record<Figure, number>> = {
  single: 1.78,
  place50: 5.6,
  modify50: 5,
  limits: 3.05,
  fill: 3.05,
  orderRowBytes: 1_500,
  fillBytes: 10_600,
};

/** Our CPU time in milliseconds with the bar of it, and its ratio to bare work of the same run with the bar of that. */
export function cpuRows(
  figure: Figure,
  what: string,
  { ms, databaseMs, ratio }: { ms: number; databaseMs: number; ratio: { to: string; value: number } },
  bars: { ms: number; ratio: number } | null,
): ScaleRow[] {
  const bound = (atMost: number | undefined) => (atMost === undefined ? null : { atMost });
  return [
    { goal: 'S1', figure, what, value: ms, unit: 'ms', databaseMs, bound: bound(bars?.ms) },
    {
      ...{ goal: 'S2', figure: null, what: `${what} / ${ratio.to}`, value: ratio.value, unit: 'x', databaseMs: null },
      bound: bound(bars?.ratio),
    },
  ];
}

/** A time that has no bar: it is for the model. */
export const timeRow = (
  figure: Figure,
  what: string,
  ms: number,
  { databaseMs }: { databaseMs: number },
): ScaleRow => ({
  ...{ goal: 'S4', figure, what, value: ms, unit: 'ms', databaseMs, bound: null },
});

export const bytesRow = (figure: Figure, what: string, value: number, atMost: number | null): ScaleRow => ({
  ...{ goal: 'S3', figure, what, value, unit: 'B', databaseMs: null },
  bound: atMost === null ? null : { atMost },
});

/** The table as text: what it was before, value, the database's part, bar, verdict. */
export function printed(rows: readonly ScaleRow[], holds: (row: Row) => boolean): string {
  const head = `${''.padEnd(69)} ${'before'.padStart(8)}  ${'ours'.padStart(10)}  ${'database'.padStart(9)}  bar\n`;
  return (
    head +
    rows
      .map((row) => {
        const bound = row.bound !== null && 'atMost' in row.bound ? `<= ${row.bound.atMost}` : '';
        const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
        const database = row.databaseMs === null ? '' : `${row.databaseMs.toPrecision(2)} ms`;
        const value = `${row.unit === 'B' ? row.value.toFixed(0) : row.value.toPrecision(3)} ${row.unit}`;
        const before = row.figure === null ? '' : `${BEFORE[row.figure] ?? ''}`;
        return `${row.goal.padEnd(3)} ${row.what.padEnd(65)} ${before.padStart(8)}  ${value.padStart(10)}  ${database.padStart(9)}  ${bound.padEnd(8)} ${verdict}\n`;
      })
      .join('')
  );
}
