/** Tables of sums: what accounts did in a market and a period. */

export interface SumTable {
  name: string;
  /** Columns of the key: names first, then whole numbers, the last of which is when the period began. */
  text: readonly string[];
  whole: readonly string[];
  sums: readonly string[];
  periodMs: number;
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

const FLOWS = ['fills', 'bought_base', 'bought_quote', 'sold_base', 'sold_quote'] as const;
const BOOKS = ['curves', 'offered_ask', 'offered_bid'] as const;
const FEES = ['fee_base', 'fee_quote', 'input_base', 'input_quote'] as const;

/**
 * Sums of a maker: its fills, what it bought and sold in them, its profit from closing, the number of curves that were hit while it had
 * orders in them and the base amount of those orders; per horizon its markout, and the quote amount of the parts with and without a middle.
 */
export const MAKER_HOURS = {
  name: 'maker_hours',
  text: ['maker'],
  whole: ['market', 'hour_ms'],
  sums: [
    ...FLOWS,
    ...['parts', 'closed_quote'],
    ...BOOKS,
    ...['markout_1', 'marked_1', 'unmarked_1'],
    ...['markout_10', 'marked_10', 'unmarked_10'],
    ...['markout_60', 'marked_60', 'unmarked_60'],
  ],
  periodMs: HOUR_MS,
} as const satisfies SumTable;

/**
 * Sums of a taker: what it bought and sold, its fees, and what it paid beyond the middle of the curve, with the quote amount of fills that
 * had a middle.
 */
export const TAKER_DAYS = {
  name: 'taker_days',
  text: ['taker'],
  whole: ['market', 'day_ms'],
  sums: [...FLOWS, ...FEES, 'slippage_quote', 'priced_quote'],
  periodMs: DAY_MS,
} as const satisfies SumTable;

/**
 * Sums of a market: its fills, what makers bought and sold in them, the operator's gain, fees, and the books of the curves that were hit.
 */
export const MARKET_HOURS = {
  name: 'market_hours',
  text: [],
  whole: ['market', 'hour_ms'],
  sums: [...FLOWS, 'gain_quote', ...FEES, ...BOOKS],
  periodMs: HOUR_MS,
} as const satisfies SumTable;

/** What transactions cost, by the role that sent them and the market that they were for, or none. */
export const GAS_DAYS = {
  name: 'gas_days',
  text: ['role'],
  whole: ['market', 'day_ms'],
  sums: ['gas', 'fee_wei'],
  periodMs: DAY_MS,
} as const satisfies SumTable;

/** A sum by the name of its column. */
export type SumOf<T extends SumTable> = T['sums'][number];
export type MakerSum = SumOf<typeof MAKER_HOURS>;
export type TakerSum = SumOf<typeof TAKER_DAYS>;
export type MarketSum = SumOf<typeof MARKET_HOURS>;

/** Beginning of the table's period that contains a time. */
export const periodOf = ({ periodMs }: Pick<SumTable, 'periodMs'>, timeMs: number): number =>
  Math.floor(timeMs / periodMs) * periodMs;
