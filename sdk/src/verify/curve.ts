import { parseUnits } from '../../../core/amounts.js';
import { checkCurve } from '../../../core/curve/check.js';
import { decodeSide, wordsHash, wordsUsed } from '../../../core/curve/words.js';
import { subticksToPrice, unitsToSize } from '../../../core/market.js';
import { snapshotHash } from '../../../core/snapshot.js';
import type { Address, Market, MarketSnapshot, SnapshotOrder } from '../../../core/types.js';
import { marketOf } from '../deployment.js';
import type { Deployment } from '../deployment.js';
import { CurvebookError } from '../errors.js';
import type { Answer } from '../read/client.js';
import { problemsIn, readAs } from './told.js';

export type Curve = Answer<'/v0/curves/{pair}/{curve_seq}'>;

/** What a touch has instead of a hash: it sends no words. */
const NO_HASH = '0x';

/** True of what prolongs another curve. The kind alone says nothing: a post that is called a touch is none. */
export const isTouch = ({ curve_seq, base_seq, prepared }: Curve): boolean =>
  base_seq !== curve_seq && prepared?.kind === 'touch';

/** Where the kind of a curve, its number and that of the curve it builds on contradict each other, or are none. */
export function contradictionsOf({ curve_seq, base_seq, block_number, prepared }: Curve): string[] {
  // What is no number compares with nothing, so that no other check would fail.
  const problems = Object.entries({ base_seq, block_number })
    .filter(([, value]) => !Number.isSafeInteger(value))
    .map(([name]) => `curve ${curve_seq} has no ${name}`);
  if (base_seq > curve_seq) problems.push(`curve ${curve_seq} is said to prolong the later curve ${base_seq}`);
  if (prepared?.kind === 'touch' && base_seq === curve_seq)
    problems.push(`curve ${curve_seq} is said to be a touch, and to prolong no curve`);
  if (prepared?.kind === 'full' && base_seq !== curve_seq)
    problems.push(`curve ${curve_seq} is said to be a full post, and to prolong curve ${base_seq}`);
  return problems;
}

/**
 * The book behind an expired curve, compared with the hash that was stored with it. Throws CurvebookError `NO_BOOK`, or `BAD_CURVE` for one that has
 * another hash, is not in its order, can't be read, or has that hash only as a text: what is hashed are lines, and a string may hold several.
 */
export const snapshotOf = (market: Market, curve: Curve): MarketSnapshot =>
  readAs('BAD_CURVE', () => bookOf(market, curve));

function bookOf(market: Market, curve: Curve): MarketSnapshot {
  const { snapshot, prepared } = curve;
  if (snapshot === null || prepared === null) {
    throw new CurvebookError(
      'NO_BOOK',
      `the book of curve ${curve.curve_seq} is shown once it is dead, if a fill hit it`,
    );
  }
  const fail = (why: string): CurvebookError => new CurvebookError('BAD_CURVE', why);
  if (!Number.isSafeInteger(snapshot.fill_seq)) throw fail('the book is of no fill');
  const orders = (list: readonly ListedOrder[]): SnapshotOrder[] => {
    if (!list.every(isOrder)) throw fail('the book has an order that is none');
    return list.map(({ oid, maker, ticks, lots }) => ({
      oid,
      maker: maker as Address,
      priceTicks: BigInt(ticks),
      sizeLots: BigInt(lots),
    }));
  };
  const book: MarketSnapshot = {
    market: market.index,
    fillSeq: snapshot.fill_seq,
    askVolumeUnits: parseUnits(snapshot.ask_volume, market.base.decimals),
    bidVolumeUnits: parseUnits(snapshot.bid_volume, market.base.decimals),
    asks: orders(snapshot.asks),
    bids: orders(snapshot.bids),
  };
  if (!isInOrder(book.asks, 1n) || !isInOrder(book.bids, -1n)) throw fail('the book is not in its order');
  if (snapshotHash(book) !== prepared.snapshot_hash) throw fail('the book is not that of its hash');
  return book;
}

type ListedOrder = NonNullable<Curve['snapshot']>['asks'][number];

const isOrder = ({ oid, maker, ticks, lots }: ListedOrder): boolean =>
  Number.isSafeInteger(oid) &&
  /^0x[0-9a-f]{40}$/.test(maker) &&
  [ticks, lots].every((one) => Number.isSafeInteger(one) && one > 0);

/** Best price first, then lower maker, then lower oid; none twice. Prices rise by `sign`. */
function isInOrder(side: readonly SnapshotOrder[], sign: bigint): boolean {
  return side.every((order, i) => {
    const before = side[i - 1];
    if (before === undefined) return true;
    if (before.priceTicks !== order.priceTicks) return before.priceTicks * sign < order.priceTicks * sign;
    return before.maker === order.maker ? before.oid < order.oid : before.maker < order.maker;
  });
}

const isWord = (text: string): boolean => /^0x[0-9a-f]{64}$/.test(text);

/**
 * Checks that a curve is what its words say and, if its book is shown, that it is never better for takers than that book: the words have the hash
 * `words_hash` (compare that with the chain's event), their segments are those listed, and up to the end of each segment the curve costs at least as
 * much as the book. A touch has no hash of its own: its words are those of the curve that it prolongs. Returns what is wrong; empty if nothing is.
 */
export const verifyCurve = (deployment: Deployment, curve: Curve): string[] =>
  problemsIn((problems) => checkWords(deployment, curve, problems));

function checkWords(deployment: Deployment, curve: Curve, problems: string[]): void {
  const market = marketOf(deployment, curve.pair);
  const { prepared } = curve;
  if (prepared === null) return void problems.push('it was never prepared');
  problems.push(...contradictionsOf(curve));
  if (![...prepared.ask_words, ...prepared.bid_words].every(isWord))
    return void problems.push('what is said to be a word is none');
  const words = { ask: prepared.ask_words.map(BigInt), bid: prepared.bid_words.map(BigInt) };
  // `words` is the whole curve as it stands on-chain.
  const hasHash = !isTouch(curve) || curve.words_hash !== NO_HASH;
  if (hasHash && wordsHash(words.ask, words.bid) !== curve.words_hash) problems.push('the words have another hash');
  // The hash is over the words of both sides in a row: it does not say where the one ends.
  const miscounted = (['ask', 'bid'] as const).filter((side) => countOf(words[side]) !== words[side].length);
  for (const side of miscounted)
    problems.push(`the ${side}s have ${words[side].length} words, of which the first says ${countOf(words[side])}`);
  if (miscounted.length > 0) return;
  const decoded = { asks: decodeSide(market, 'ask', words.ask), bids: decodeSide(market, 'bid', words.bid) };
  for (const side of ['asks', 'bids'] as const) {
    const said = decoded[side].map(
      ({ lengthUnits, subticks }) => `${unitsToSize(market, lengthUnits)}@${subticksToPrice(market, subticks)}`,
    );
    const listed = prepared[side].map(({ size, price }) => `${size}@${price}`);
    if (said.join() !== listed.join()) problems.push(`the ${side} are not what the words say`);
  }
  if (curve.snapshot === null) return;
  const posted = { ...decoded, exactAskKnots: prepared.exact_ask_knots, exactBidKnots: prepared.exact_bid_knots };
  for (const { code, side, message } of checkCurve(market, snapshotOf(market, curve), posted))
    problems.push(`${side ?? 'curve'} ${code}: ${message}`);
}

const countOf = (words: readonly bigint[]): number => wordsUsed(words[0] ?? 0n);
