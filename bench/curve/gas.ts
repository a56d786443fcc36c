/** Gas of posts of real curves, measured on the chain of bench/gas, and whether the poster's model chooses the cheaper of full and partial posts. */
import { compressSide } from '../../core/curve/compress.js';
import { encodePost, type FullPost, type PostRecord } from '../../core/curve/post.js';
import { marketId } from '../../core/market.js';
import type { Address, Market } from '../../core/types.js';
import { cheaperPost, fullGas, partialGas, partialOf } from '../../keepers/poster/gas.js';
import { createVenue, warmUp, type Venue } from '../gas/curvebook.js';
import { createWorld } from '../gas/world.js';
import type { BenchSide } from './books.js';

const MARKET = { lotUnits: 1n } as Market;
const FIRST_SEQ = 30_060_001;
const TTL_SEC = 200;

export interface PostGas {
  knots: number;
  /** Ask words of a full post that are other than before; -1 for a touch. */
  changedWords: number;
  calldataBytes: number;
  fullGas: number;
  /** Null where the live curve does not matter. */
  partialGas: number | null;
  /** Error of the poster's model of how much more gas the partial post costs than the full one; null for a touch. */
  modelError: number | null;
  /** What the poster would send. */
  chosen: 'full' | 'partial' | 'touch';
}

/** Gas of posting the curve of two sides with 7, 15 and 31 knots, whole and with few words changed, and of a touch. */
export async function measurePosts(ask: BenchSide, bid: BenchSide): Promise<PostGas[]> {
  const world = await createWorld();
  try {
    const venue = await createVenue(world);
    await warmUp(venue);
    const rows: PostGas[] = [];
    for (const knots of [7, 15, 31]) {
      const words = (book: BenchSide): bigint[] => compressSide(MARKET, book.side, book.levels, knots).words;
      rows.push(...(await measureKnots(venue, knots, words(ask), words(bid))));
    }
    return rows;
  } finally {
    await world.chain.close();
  }
}

async function measureKnots(venue: Venue, knots: number, askWords: bigint[], bidWords: bigint[]): Promise<PostGas[]> {
  const rows: PostGas[] = [];
  const { chain } = venue.world;
  for (let changed = 0; changed <= askWords.length; changed++) {
    const [next, before] = await recordsOf(venue, askWords, bidWords, changed);
    const run = (record: PostRecord) =>
      chain.undo(async () => {
        await send(venue, before);
        return send(venue, record);
      });
    const full = await run(next);
    const partial = await run(partialOf(next, before));
    const head = await chain.head();
    const chosen = cheaperPost(head, next, before).kind;
    const { calldataBytes } = chosen === 'full' ? full : partial;
    const words = askWords.length + bidWords.length;
    const predicted = partialGas(head, partialOf(next, before), words, changed) - fullGas(head, next, words, changed);
    const modelError = predicted - (partial.gas - full.gas);
    rows.push({
      knots,
      changedWords: changed,
      calldataBytes,
      fullGas: full.gas,
      partialGas: partial.gas,
      modelError,
      chosen,
    });
  }
  const [next, before] = await recordsOf(venue, askWords, bidWords, 0);
  const { marketId: id, seq, deadlineSec } = next;
  const touch = await chain.undo(async () => {
    await send(venue, before);
    return send(venue, { kind: 'touch', marketId: id, seq, deadlineSec, baseSeq: before.seq });
  });
  const { gas, calldataBytes } = touch;
  return [
    ...rows,
    { knots, changedWords: -1, calldataBytes, fullGas: gas, partialGas: null, modelError: null, chosen: 'touch' },
  ];
}

/** A post, and the one before it, which differ in the last `changed` ask words. */
async function recordsOf(
  venue: Venue,
  askWords: bigint[],
  bidWords: bigint[],
  changed: number,
): Promise<[FullPost, FullPost]> {
  const [pair] = venue.world.pairs;
  if (pair === undefined) throw new Error('no pair to post for');
  const { timestampSec } = await venue.world.chain.head();
  const before: FullPost = {
    kind: 'full',
    marketId: marketId(pair.base.address as Address, pair.quote.address as Address),
    seq: FIRST_SEQ,
    deadlineSec: timestampSec + TTL_SEC,
    snapAskUnits: 10n ** 20n + 123_456_789n,
    snapBidUnits: 10n ** 20n + 987_654_321n,
    exactAskKnots: 1,
    exactBidKnots: 1,
    // Another mantissa in the last knot of a word.
    askWords: askWords.map((word, i) => (i < askWords.length - changed ? word : word ^ (1n << 20n))),
    bidWords,
  };
  const { deadlineSec, snapAskUnits } = before;
  const next = { ...before, seq: FIRST_SEQ + 1, deadlineSec: deadlineSec + 2, snapAskUnits: snapAskUnits + 77_777n };
  return [{ ...next, askWords }, before];
}

async function send(venue: Venue, record: PostRecord) {
  const { chain, operator } = venue.world;
  return chain.call(operator, venue.curveBook, 'post', [encodePost(await chain.head(), [record])]);
}
