/** Rebuilds posted curves from the logs alone, and says how a stored record differs. */
import { buildCurve } from '../../core/curve/build.js';
import { checkCurve } from '../../core/curve/check.js';
import { COMPRESSION } from '../../core/curve/compress.js';
import { wordChanges, type PostRecord } from '../../core/curve/post.js';
import { decodeSide, wordsHash } from '../../core/curve/words.js';
import { snapshotHash } from '../../core/snapshot.js';
import type { Hex, Market, MarketSnapshot } from '../../core/types.js';
import { readPublication } from './publication-log.js';
import type { StoredVolumes } from './raises.js';
import { SnapshotMismatchError, type SnapshotStore } from '../orders/snapshots.js';
import type { Publication, Queryable } from '../types.js';

/** How a record differs from its reconstruction. */
type RecordFault =
  /** The logs give another book than the prepared one. */
  | 'snapshot'
  /** The words, or the counts of exact segments, are not those that this version makes of the book; only judged when the same version made them. */
  | 'words'
  /** The recorded hash is not that of the recorded words. */
  | 'words_hash'
  /** The curve is better than the book, deeper, crossed or out of order, or names segments as exact that are not. */
  | 'check'
  /** The publication that it builds on is missing, or has other words where it says that they stay. */
  | 'base';

/** A publication that can't be rebuilt. */
export class RecordFaultError extends Error {
  override readonly name = 'RecordFaultError';

  constructor(
    readonly code: RecordFault,
    publication: Pick<Publication, 'market' | 'seq'>,
    message: string,
  ) {
    super(`publication ${publication.seq} of market ${publication.market}: ${message}`);
  }
}

/** A publication derived from the logs. `record` is what its transaction carried. */
interface RebuiltPublication {
  snapshot: MarketSnapshot;
  record: PostRecord;
}

/**
 * Rebuilds a publication: replays the logs up to its cut, leaves out and trims what it says, compresses, checks, and gives the record that was
 * sent. Rebuilding in the order of cuts reads each log once. Throws RecordFaultError, with the first fault in the order above.
 */
export async function rebuildPublication(
  q: Queryable,
  deps: { markets: readonly Market[]; snapshots: SnapshotStore },
  publication: Publication,
): Promise<RebuiltPublication> {
  const fault = (code: RecordFault, message: string) => new RecordFaultError(code, publication, message);
  const market = deps.markets[publication.market];
  if (market === undefined) throw fault('snapshot', 'its market is not listed');
  const snapshot = await snapshotOf(q, deps.snapshots, publication);
  checkWords(market, snapshot, publication, fault);
  return { snapshot, record: await recordOf(q, market, publication, fault) };
}

/**
 * Checks what can be checked of a publication whose order rows were compacted: its words against its book, when that was stored because a
 * fill hit it, and what it built on. Throws RecordFaultError.
 */
export async function checkCompactedPublication(
  q: Queryable,
  market: Market,
  publication: Publication,
  stored: MarketSnapshot | null,
): Promise<void> {
  const fault = (code: RecordFault, message: string) => new RecordFaultError(code, publication, message);
  if (stored !== null && snapshotHash(stored) !== publication.snapshotHash) {
    throw fault(
      'snapshot',
      `its stored book hashes to ${snapshotHash(stored)}, prepared as ${publication.snapshotHash}`,
    );
  }
  if (stored === null) checkWordsHash(publication, fault);
  else checkWords(market, stored, publication, fault);
  await recordOf(q, market, publication, fault);
}

/** Checks that a publication's words are those of a book that is not in the logs. Throws RecordFaultError. */
export function checkBookWords(market: Market, snapshot: MarketSnapshot, publication: Publication): void {
  checkWords(market, snapshot, publication, (code, message) => new RecordFaultError(code, publication, message));
}

/** The record that a publication's transaction carried, of its words alone. Throws RecordFaultError `base` or `words_hash`. */
export async function recordSent(q: Queryable, market: Market, publication: Publication): Promise<PostRecord> {
  const fault: Fault = (code, message) => new RecordFaultError(code, publication, message);
  checkWordsHash(publication, fault);
  return recordOf(q, market, publication, fault);
}

async function snapshotOf(q: Queryable, snapshots: SnapshotStore, publication: Publication): Promise<MarketSnapshot> {
  try {
    return await snapshots.get(q, publication);
  } catch (error) {
    if (!(error instanceof SnapshotMismatchError)) throw error;
    throw new RecordFaultError('snapshot', publication, error.message);
  }
}

type Fault = (code: RecordFault, message: string) => RecordFaultError;

function checkWords(market: Market, snapshot: MarketSnapshot, publication: Publication, fault: Fault): void {
  const { askWords, bidWords, askKnots, bidKnots, compression, maxErrorMilliBps } = publication;
  const made =
    compression === COMPRESSION ? buildCurve(market, snapshot, { askKnots, bidKnots, maxErrorMilliBps }) : null;
  const hash = wordsHash(askWords, bidWords);
  if (made !== null && made.wordsHash !== hash) {
    throw fault('words', `the book gives words ${made.wordsHash}, recorded are ${hash}`);
  }
  const [exactAsks, exactBids] = [publication.exactAskKnots, publication.exactBidKnots];
  if (made !== null && (made.exactAskKnots !== exactAsks || made.exactBidKnots !== exactBids)) {
    const exact = `${made.exactAskKnots} and ${made.exactBidKnots}`;
    throw fault('words', `${exact} segments equal the book, recorded are ${exactAsks} and ${exactBids}`);
  }
  const [askPpb, bidPpb] = [publication.askErrorPpb, publication.bidErrorPpb];
  const differs = (recorded: number | null, ppb: bigint): boolean => recorded !== null && BigInt(recorded) !== ppb;
  if (made !== null && (differs(askPpb, made.askErrorPpb) || differs(bidPpb, made.bidErrorPpb))) {
    throw fault(
      'words',
      `errors are ${made.askErrorPpb} and ${made.bidErrorPpb} ppb, recorded are ${askPpb} and ${bidPpb}`,
    );
  }
  checkWordsHash(publication, fault);
  const curve = {
    asks: decodeSide(market, 'ask', askWords),
    bids: decodeSide(market, 'bid', bidWords),
    exactAskKnots: publication.exactAskKnots,
    exactBidKnots: publication.exactBidKnots,
  };
  const [violation] = checkCurve(market, snapshot, curve);
  if (violation !== undefined) throw fault('check', `${violation.code}: ${violation.message}`);
}

function checkWordsHash({ askWords, bidWords, wordsHash: recorded }: Publication, fault: Fault): void {
  const hash = wordsHash(askWords, bidWords);
  if (hash !== recorded) throw fault('words_hash', `its words hash to ${hash}, not ${recorded}`);
}

async function recordOf(q: Queryable, market: Market, publication: Publication, fault: Fault): Promise<PostRecord> {
  const { seq, baseSeq, kind, deadlineSec, askWords, bidWords } = publication;
  const head = { marketId: market.id, seq, deadlineSec };
  const volumes = {
    snapAskUnits: publication.askVolumeUnits,
    snapBidUnits: publication.bidVolumeUnits,
    exactAskKnots: publication.exactAskKnots,
    exactBidKnots: publication.exactBidKnots,
  };
  if (kind === 'full') return { kind, ...head, ...volumes, askWords, bidWords };
  const base = await readPublication(q, publication.market, baseSeq);
  if (base === null) throw fault('base', `it builds on ${baseSeq}, which is missing`);
  if (kind === 'touch') {
    const same = base.wordsHash === publication.wordsHash && base.snapshotHash === publication.snapshotHash;
    if (!same) throw fault('base', `it prolongs ${baseSeq}, which is another curve`);
    return { kind, ...head, baseSeq };
  }
  const askChanges = wordChanges(base.askWords, askWords);
  const bidChanges = wordChanges(base.bidWords, bidWords);
  return { kind, ...head, ...volumes, baseSeq, askChanges, bidChanges };
}

/** A market's live curve as the chain has it. */
export interface ChainCurve {
  seq: number;
  deadlineSec: number;
  snapAskUnits: bigint;
  snapBidUnits: bigint;
  askWords: readonly bigint[];
  bidWords: readonly bigint[];
}

/**
 * Where the chain differs from the publication that should be live there, and from the post behind it as it landed, with what that one
 * raised; empty when nowhere.
 */
export function differencesFromChain(
  publication: Pick<Publication, 'seq' | 'deadlineSec' | 'wordsHash'>,
  posted: StoredVolumes,
  chain: ChainCurve,
): string[] {
  const differences: string[] = [];
  const compare = (name: string, recorded: bigint | number | Hex, found: bigint | number | Hex): void => {
    if (recorded !== found) differences.push(`${name}: recorded ${recorded}, on-chain ${found}`);
  };
  compare('seq', publication.seq, chain.seq);
  compare('deadline', publication.deadlineSec, chain.deadlineSec);
  compare('ask volume', posted.snapAskUnits, chain.snapAskUnits);
  compare('bid volume', posted.snapBidUnits, chain.snapBidUnits);
  compare('words', publication.wordsHash, wordsHash(chain.askWords, chain.bidWords));
  return differences;
}
