import { z } from 'zod';
import { BookError } from '../../core/book/create-book.js';
import { PayloadError } from '../../core/json.js';
import { MarketError } from '../../core/market.js';
import { readTx } from '../../ledger/db/db.js';
import { readCompactionPosition } from '../../ledger/orders/compacted-book.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { LedgerInvariantError } from '../../ledger/errors.js';
import { readReversals } from '../../ledger/chain/reversals.js';
import type { Queryable } from '../../ledger/types.js';
import { verifyActivity, verifyGains } from './activity.js';
import { verifyBlocks } from './blocks.js';
import { verifyChain } from './chain.js';
import { compareArchivedCheckpoint, verifyCheckpoints, type ArchivedVerdict } from './checkpoints.js';
import { verifyClaims } from './withdrawals.js';
import { verifyCurves } from './curves.js';
import { verifyEntries } from './entries.js';
import { verifyCompaction } from './compaction.js';
import { verifyMarketData } from './market-data.js';
import { verifySuspense } from './suspense.js';
import { VerifyError, type Verification, type VerifyDeps } from './verification.js';
import { readSuspense } from '../../ledger/chain/suspense.js';

/** Counts of checked rows, and warnings. */
export interface VerifyReport {
  generation: number;
  blockNumber: number;
  blocks: number;
  reversals: number;
  /** Posted curves rebuilt from the logs, and decompositions derived from them. */
  curves: number;
  /** Of these, the ones whose order rows were compacted: only their words and, after a fill, their stored book could be checked. */
  foldedCurves: number;
  fills: number;
  /** Orders of the compacted book, compared with their fills. */
  foldedOrders: number;
  postings: number;
  balances: number;
  /** Pairs of maker and taker whose gains add up. */
  pairs: number;
  /** Candles that follow from the fills, beside the positions of makers. */
  candles: number;
  /** Sums by hour and day of makers, takers and markets that follow from fills, posts and books. */
  activity: number;
  claims: number;
  checkpoints: number;
  /** Whether the balances are those of the newest checkpoint that a lost database had published; null where nothing was imported. */
  archivedCheckpoint: ArchivedVerdict | null;
  /** What no stored book or settlement explains, curves that were not prepared here included, and how much of it waits for the operator. */
  suspense: number;
  openSuspense: number;
  /** Events of the chain that were compared; null without an endpoint. */
  chainEvents: number | null;
  /** Warnings for the operator that are no fault of the ledger. */
  warnings: string[];
}

/**
 * Derives everything in the ledger log again from the rows that it was derived from: that blocks hang together, that posted curves
 * and the decompositions of fills follow from the order log, postings from events and decompositions, balances and checkpoints from
 * postings, and withdrawals from events. With an endpoint also that blocks, events, holdings, claims and live curves are those of the chain. Reads
 * only. Throws VerifyError at the first difference.
 */
export async function verifyLedger(deps: VerifyDeps): Promise<VerifyReport> {
  return readTx(deps.db, async (q) => {
    const head = await lastGeneration(q);
    if (head === null) throw new VerifyError('blocks', 'the ledger has not scanned a block yet');
    const warnings: string[] = [];
    const verification: Verification = {
      ...deps,
      q,
      head,
      markets: await readMarkets(q),
      reversals: await readReversals(q),
      compacted: await readCompactionPosition(q),
      warn: (message) => void warnings.push(message),
      suspended: await readSuspendedFills(q),
    };
    const blocks = await readable('blocks', () => verifyBlocks(verification));
    const { curves, foldedCurves, fills } = await readable('curves', () => verifyCurves(verification));
    const foldedOrders = await readable('folded orders', () => verifyCompaction(verification));
    const { postings, balances } = await readable('postings', () => verifyEntries(verification));
    const pairs = await readable('gains', () => verifyGains(verification));
    const candles = await readable('market data', () => verifyMarketData(verification));
    const activity = await readable('activity', () => verifyActivity(verification));
    const claims = await readable('withdrawals', () => verifyClaims(verification));
    const checkpoints = await readable('checkpoints', () => verifyCheckpoints(verification));
    const archivedCheckpoint = await readable('checkpoints', () => compareArchivedCheckpoint(verification));
    const suspense = await readable('suspense', () => verifySuspense(verification));
    const { rpc } = deps;
    const chainEvents = rpc === null ? null : await readable('chain', () => verifyChain(verification, rpc));
    return {
      generation: head.generation,
      blockNumber: head.toBlock,
      blocks,
      reversals: verification.reversals.length,
      curves,
      foldedCurves,
      fills,
      foldedOrders,
      postings,
      balances,
      pairs,
      candles,
      activity,
      claims,
      checkpoints,
      archivedCheckpoint,
      suspense: suspense.items,
      openSuspense: suspense.open,
      chainEvents,
      warnings,
    };
  });
}

async function readSuspendedFills(q: Queryable): Promise<ReadonlySet<string>> {
  const fills = (await readSuspense(q, { open: false })).filter(({ kind, maker }) => kind === 'fill' && maker === null);
  return new Set(fills.map(({ market, seq }) => `${market}:${seq}`));
}

/** Errors for a row that the program can't have written: it refers to a missing row, or has a malformed number or JSON. */
const UNREADABLE = [
  RangeError,
  TypeError,
  SyntaxError,
  z.ZodError,
  PayloadError,
  BookError,
  MarketError,
  LedgerInvariantError,
] as const;

/** A malformed row counts as a difference, unlike a database or a node that does not answer. */
async function readable<T>(check: string, verify: () => Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch (error) {
    if (UNREADABLE.some((kind) => error instanceof kind))
      throw new VerifyError(check, `a row can not be read: ${(error as Error).message}`);
    throw error;
  }
}
