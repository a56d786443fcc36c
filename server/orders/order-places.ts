/** In which rows of the order log orders were opened and closed: eight bytes for each order, so that one that is closed for long is found without a search. */

/** Rows of the order log, by their numbers; null where none is known. */
export interface OrderPlaces {
  opened: number | null;
  closed: number | null;
  /** Rows that made the order smaller. */
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
/** Orders that are indexed at most, 32 MiB of them; the oldest are forgotten first. */
const MAX_INDEXED_ORDERS = 1_024 * SEGMENT;

/** Numbers of rows behind `base`, so that they fit into four bytes; zero for none. */
interface Segment {
  base: number;
  opened: Uint32Array;
  closed: Uint32Array;
  reduced: Map<number, number[]>;
}

/** An empty index. Rows come in their order. */
export function createOrderIndex(maxOrders = MAX_INDEXED_ORDERS): OrderIndex {
  const segments = new Map<number, Segment>();
  const numberOf = (oid: number): number => Math.floor(oid / SEGMENT);

  function segmentOf(oid: number, orderSeq: number): Segment {
    const number = numberOf(oid);
    const known = segments.get(number);
    if (known !== undefined) return known;
    const made: Segment = {
      base: orderSeq - 1,
      opened: new Uint32Array(SEGMENT),
      closed: new Uint32Array(SEGMENT),
      reduced: new Map(),
    };
    segments.set(number, made);
    // Ids rise, so the first segment is the oldest, unless an old order is closed late.
    if (segments.size * SEGMENT > maxOrders) segments.delete(segments.keys().next().value as number);
    return made;
  }

  const placeIn = (rows: Uint32Array, { base }: Segment, oid: number): number | null => {
    const behind = rows[oid % SEGMENT] as number;
    return behind === 0 ? null : base + behind;
  };

  return {
    opened(oid, orderSeq) {
      const segment = segmentOf(oid, orderSeq);
      segment.opened[oid % SEGMENT] = orderSeq - segment.base;
    },
    closed(oid, orderSeq) {
      const segment = segmentOf(oid, orderSeq);
      segment.closed[oid % SEGMENT] = orderSeq - segment.base;
    },
    reduced(oid, orderSeq) {
      const { reduced } = segmentOf(oid, orderSeq);
      reduced.set(oid, [...(reduced.get(oid) ?? []), orderSeq]);
    },
    places(oid) {
      const segment = segments.get(numberOf(oid));
      if (segment === undefined) return { opened: null, closed: null, reduced: [] };
      return {
        opened: placeIn(segment.opened, segment, oid),
        closed: placeIn(segment.closed, segment, oid),
        reduced: segment.reduced.get(oid) ?? [],
      };
    },
  };
}
