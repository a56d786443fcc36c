/**
 * Index of the rows of the order log that opened and closed each order: eight bytes per order, so that an order closed long ago is found
 * without a search.
 */

/** Rows of the order log, by their numbers; null where none is known. */
export interface OrderPlaces {
  opened: number | null;
  closed: number | null;
  /** Rows that reduced the order. */
  reduced: readonly number[];
}

interface OrderIndex {
  opened(oid: number, orderSeq: number): void;
  closed(oid: number, orderSeq: number): void;
  reduced(oid: number, orderSeq: number): void;
  places(oid: number): OrderPlaces;
}

/** Orders of one segment. */
const SEGMENT = 4_096;
/** Most indexed orders, which take 32 MiB; the oldest are dropped first. */
const MAX_INDEXED_ORDERS = 1_024 * SEGMENT;
/** Most rows that reduced one order. An order with more is dropped, because its size follows only from all of them. */
export const MAX_REDUCTIONS = 1_000;
/** Most rows that reduced any order; the oldest orders are dropped first. */
const MAX_REDUCED_ROWS = 1_000_000;

/** Row numbers relative to `base`, so that they fit into four bytes; zero for none. */
interface Segment {
  base: number;
  opened: Uint32Array;
  closed: Uint32Array;
  /** An empty list means too many. */
  reduced: Map<number, number[]>;
  reducedRows: number;
}

const UNKNOWN: OrderPlaces = { opened: null, closed: null, reduced: [] };

/** Creates an empty index. Rows must come in their order. Orders older than a dropped one are not indexed any more. */
export function createOrderIndex(maxOrders = MAX_INDEXED_ORDERS, maxReducedRows = MAX_REDUCED_ROWS): OrderIndex {
  const segments = new Map<number, Segment>();
  const numberOf = (oid: number): number => Math.floor(oid / SEGMENT);
  /** Segments below this one were dropped. */
  let first = 0;
  let reducedRows = 0;

  /** Null for a dropped order. */
  function segmentOf(oid: number, orderSeq: number): Segment | null {
    const number = numberOf(oid);
    if (number < first) return null;
    const known = segments.get(number);
    if (known !== undefined) return known;
    const made: Segment = {
      base: orderSeq - 1,
      opened: new Uint32Array(SEGMENT),
      closed: new Uint32Array(SEGMENT),
      reduced: new Map(),
      reducedRows: 0,
    };
    segments.set(number, made);
    if (segments.size * SEGMENT > maxOrders) forgetOldest();
    return segments.get(number) ?? null;
  }

  function forgetOldest(): void {
    // The segment of an old order that was closed late may have been created after newer ones.
    const oldest = Math.min(...segments.keys());
    reducedRows -= segments.get(oldest)?.reducedRows ?? 0;
    segments.delete(oldest);
    first = oldest + 1;
  }

  const placeIn = (rows: Uint32Array, { base }: Segment, oid: number): number | null => {
    const behind = rows[oid % SEGMENT] as number;
    return behind === 0 ? null : base + behind;
  };

  return {
    opened(oid, orderSeq) {
      const segment = segmentOf(oid, orderSeq);
      if (segment !== null) segment.opened[oid % SEGMENT] = orderSeq - segment.base;
    },
    closed(oid, orderSeq) {
      const segment = segmentOf(oid, orderSeq);
      if (segment !== null) segment.closed[oid % SEGMENT] = orderSeq - segment.base;
    },
    reduced(oid, orderSeq) {
      const segment = segmentOf(oid, orderSeq);
      if (segment === null) return;
      const rows = segment.reduced.get(oid);
      if (rows?.length === 0) return;
      if (rows?.length === MAX_REDUCTIONS) {
        rows.length = 0;
        segment.reducedRows -= MAX_REDUCTIONS;
        reducedRows -= MAX_REDUCTIONS;
        return;
      }
      if (rows === undefined) segment.reduced.set(oid, [orderSeq]);
      else rows.push(orderSeq);
      segment.reducedRows += 1;
      reducedRows += 1;
      if (reducedRows > maxReducedRows && segments.size > 1) forgetOldest();
    },
    places(oid) {
      const segment = segments.get(numberOf(oid));
      const reduced = segment?.reduced.get(oid);
      if (segment === undefined || reduced?.length === 0) return UNKNOWN;
      return {
        opened: placeIn(segment.opened, segment, oid),
        closed: placeIn(segment.closed, segment, oid),
        reduced: reduced ?? [],
      };
    },
  };
}
