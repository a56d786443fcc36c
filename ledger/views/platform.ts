/** Newest state of all logs, for the status page: every query reads only the newest rows of an index. */
import { consumedUnits } from '../../core/curve/walk.js';
import type { Market } from '../../core/types.js';
import {
  UNATTRIBUTED,
  VAULT,
  type CheckpointHead,
  type GenerationRow,
  type PostSeen,
  type Queryable,
} from '../types.js';
import { readBalances } from '../chain/balances.js';
import { lastCheckpoint } from '../settlements/checkpoint-log.js';
import { countPendingClaims } from '../chain/claims.js';
import { lastGeneration } from '../chain/generations.js';
import { readMarketProgress } from '../chain/ledger-log.js';
import { readMarkets } from '../chain/markets.js';
import { readOrphans, type Orphans } from '../chain/orphans.js';
import { readUnmined, type Unmined } from '../transactions/outbox.js';
import { readKeepers, readSenders, type Keeper, type SenderFacts } from '../transactions/senders.js';
import { readPostSeen } from '../publications/publication-log.js';
import { readPosted } from '../publications/raises.js';
import { fillSeqs } from './reads.js';
import { readReversals, type ReversalRow } from '../chain/reversals.js';
import { readSuspenseFacts, type SuspenseFacts } from '../chain/suspense.js';
import { countPending, lastSwapAct } from '../swaps/swap-log.js';

/** The curve of one market. */
export interface CurveFacts {
  market: Market;
  /** The newest post that a scanned block has; null before the first. */
  landed: PostSeen | null;
  /** What was consumed of each of its sides as of the generation, what its post raised included; null without a curve. */
  consumed: { ask: bigint; bid: bigint } | null;
  /** Highest sequence number that was ever prepared, 0 before the first, and when. */
  preparedSeq: number;
  preparedMs: number | null;
  fillSeq: number;
}

/** One state of all logs. Times are null for what never happened. */
export interface PlatformFacts {
  generation: GenerationRow | null;
  curves: CurveFacts[];
  checkpoint: CheckpointHead | null;
  lastOrderMs: number | null;
  /** Withdrawals that wait for their settlement, and gasless orders that may still be executed. */
  pendingClaims: number;
  pendingSwaps: number;
  oldestSwapMs: number | null;
  /** The newest attempt at a signed order, or its end. */
  lastSwapActMs: number | null;
  unmined: Unmined[];
  /** What signers have spent, and how their newest transactions failed. */
  senders: SenderFacts[];
  /** How the newest process of each role was started. */
  keepers: ReadonlyMap<string, Keeper>;
  /** What the vault holds of each token as of the generation, and what of it belongs to nobody. */
  holdings: { token: string; heldUnits: bigint; unattributedUnits: bigint; suspenseUnits: bigint }[];
  /** What nothing stored explains, and waits for the operator. */
  suspense: SuspenseFacts;
  /** The newest reversal, and what the chain has lost with it. */
  reversal: { row: ReversalRow; orphans: Orphans } | null;
}

/** Call it within `readTx`. */
export async function readPlatform(q: Queryable, nowMs: number): Promise<PlatformFacts> {
  const fills = await fillSeqs(q);
  const curves: CurveFacts[] = [];
  for (const market of await readMarkets(q)) {
    const newest = await q<{ market: number; seq: number; prepared_ms: number }>('publications')
      .where({ market: market.index })
      .orderBy('seq', 'desc')
      .first('seq', 'prepared_ms');
    const landed = await readPostSeen(q, market.index);
    curves.push({
      market,
      landed,
      consumed: landed === null ? null : await consumedOf(q, landed),
      preparedSeq: newest?.seq ?? 0,
      preparedMs: newest?.prepared_ms ?? null,
      fillSeq: fills.get(market.index) ?? 0,
    });
  }
  const order = await q<{ order_seq: number; time_ms: number }>('order_log')
    .orderBy('order_seq', 'desc')
    .first('time_ms');
  const swaps = await countPending(q);
  const row = (await readReversals(q)).at(-1);
  return {
    generation: await lastGeneration(q),
    curves,
    checkpoint: await lastCheckpoint(q),
    lastOrderMs: order?.time_ms ?? null,
    pendingClaims: await countPendingClaims(q),
    pendingSwaps: swaps.count,
    oldestSwapMs: swaps.oldestMs,
    lastSwapActMs: await lastSwapAct(q),
    unmined: await readUnmined(q),
    senders: await readSenders(q, nowMs),
    keepers: await readKeepers(q),
    holdings: await readHoldings(q),
    suspense: await readSuspenseFacts(q),
    reversal: row === undefined ? null : { row, orphans: await readOrphans(q, row.generation) },
  };
}

async function consumedOf(q: Queryable, { market, seq }: PostSeen): Promise<CurveFacts['consumed']> {
  // A touch has the volumes of the post that it prolongs.
  const stored = await readPosted(q, market, seq);
  if (stored === null) return null;
  const taken = await readMarketProgress(q, market);
  return {
    ask: consumedUnits(taken?.askVolumeUnits ?? 0n, stored.snapAskUnits),
    bid: consumedUnits(taken?.bidVolumeUnits ?? 0n, stored.snapBidUnits),
  };
}

async function readHoldings(q: Queryable): Promise<PlatformFacts['holdings']> {
  const vault = await readBalances(q, { account: VAULT });
  const nobody = new Map(
    (await readBalances(q, { account: UNATTRIBUTED })).map(({ token, balanceUnits }) => [token, balanceUnits]),
  );
  const suspended = new Map(
    (await readSuspenseFacts(q)).units.map(({ token, units }): [string, bigint] => [token, units]),
  );
  // The vault's row mirrors its holdings with the opposite sign.
  return vault.map(({ token, balanceUnits }) => ({
    token,
    heldUnits: -balanceUnits,
    unattributedUnits: nobody.get(token) ?? 0n,
    suspenseUnits: suspended.get(token) ?? 0n,
  }));
}
