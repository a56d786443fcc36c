/** By how much a post raised the consumption of its sides when it landed, and by how much the carry rule requires it. */
import type { RaisedUnits } from '../../core/attribution.js';
import { raisedConsumption } from '../../core/curve/carry.js';
import { consumedUnits } from '../../core/curve/walk.js';
import { decodeSide, VOLUME_MODULUS } from '../../core/curve/words.js';
import type { Market, Side } from '../../core/types.js';
import { readPostSeen } from './publication-log.js';
import type { PostSeen, Publication, Queryable } from '../types.js';

/** A publication's values per side; a touch has those of the post that it prolongs. */
type PublishedSides = Pick<
  Publication,
  'askVolumeUnits' | 'bidVolumeUnits' | 'askWords' | 'bidWords' | 'exactAskKnots' | 'exactBidKnots'
>;

/** The volumes that the chain stores after a post, in base units modulo 2^92. */
export type StoredVolumes = Pick<PostSeen, 'snapAskUnits' | 'snapBidUnits'>;

/** The volume of a side that its snapshot reflects, as a post names it, in base units modulo 2^92. */
export function namedVolume(published: PublishedSides, side: Side): bigint {
  return (side === 'ask' ? published.askVolumeUnits : published.bidVolumeUnits) % VOLUME_MODULUS;
}

/** The volume of a side that the chain stores. */
function storedVolume(stored: StoredVolumes, side: Side): bigint {
  return side === 'ask' ? stored.snapAskUnits : stored.snapBidUnits;
}

/** By how much consumption was raised on each side, in base units. */
export function raisedBy(published: PublishedSides, stored: StoredVolumes): RaisedUnits {
  const raised = (side: Side): bigint => consumedUnits(namedVolume(published, side), storedVolume(stored, side));
  return { ask: raised('ask'), bid: raised('bid') };
}

/** By how much the carry rule raises a side of which `carryUnits` were taken between its cut and its landing, in base units. */
export function dueRaise(market: Market, published: PublishedSides, side: Side, carryUnits: bigint): bigint {
  const [words, exactKnots] =
    side === 'ask' ? [published.askWords, published.exactAskKnots] : [published.bidWords, published.exactBidKnots];
  return raisedConsumption(decodeSide(market, side, words), exactKnots, carryUnits) - carryUnits;
}

/**
 * Whether the chain may have stored this volume for a side of which `takenUnits` had been taken in all: the one that the post named, which
 * contracts without the carry rule always store, or the one by the carry rule.
 */
export function isDueVolume(
  market: Market,
  published: PublishedSides,
  stored: StoredVolumes,
  { side, takenUnits }: { side: Side; takenUnits: bigint },
): boolean {
  const raisedUnits = raisedBy(published, stored)[side];
  if (raisedUnits === 0n) return true;
  const carryUnits = consumedUnits(takenUnits, namedVolume(published, side));
  return raisedUnits === dueRaise(market, published, side, carryUnits);
}

/** The full or partial post behind a curve or a touch that was seen on-chain; null when none was. */
export async function readPosted(q: Queryable, market: number, seq: number): Promise<PostSeen | null> {
  const seen = await readPostSeen(q, market, seq);
  return seen === null || seen.postedSeq === seq ? seen : readPostSeen(q, market, seen.postedSeq);
}
