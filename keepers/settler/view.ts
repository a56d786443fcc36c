import type { Address, Market } from '../../core/types.js';
import { readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import { readPendingClaims, type PendingClaim } from '../../ledger/chain/claims.js';
import { readTx } from '../../ledger/db/db.js';
import { allOrFirstError } from '../../ledger/db/dialects.js';
import { readExposure } from '../../ledger/publications/executable.js';
import { lastGeneration, readMarkets } from '../../ledger/chain/ledger-log.js';
import { readOperatorState, type OperatorState } from '../../ledger/operator/operator-log.js';
import { publicationMark, readPostSeen, type PublicationMark } from '../../ledger/publications/publication-log.js';
import { fillSeqs } from '../../ledger/views/reads.js';
import { claimKey, lastSettlements } from '../../ledger/settlements/settlement-log.js';
import type { SnapshotStore } from '../../ledger/orders/snapshots.js';
import { readQuarantined } from '../../ledger/chain/token-findings.js';
import { concerns, isSuspendedCurve, readConcerns } from '../../ledger/chain/suspense.js';
import type { CheckpointRow, Db, GenerationRow, Queryable } from '../../ledger/types.js';
import type { PlannedSettlement } from './plan.js';

/** Most withdrawals of a kind that one round reads. */
export const CANDIDATES_MAX = 1_000;
/** How long a curve without a book still counts after its deadline, for blocks that are mined anew. */
const DEADLINE_MARGIN_SEC = 12;

/** The pending withdrawals, and the limits on settling them. Those in a token in quarantine are left out and stay pending. */
export interface PendingView {
  /**
   * First those of makers that were ever approved, then others. Within each, withdrawals that need not wait for the pace and that raise a claim
   * for the first time come first, then those that were paid most for, so that any number of waiting ones does not crowd them out; then the longest
   * waiting first.
   */
  funded: PendingClaim[];
  unfunded: PendingClaim[];
  /** The most that a funded maker can still be made to pay of the token with what is executable. */
  worstUnits(claim: PendingClaim): bigint;
}

/** Everything a round of settling is computed from, and what it plans: one state of the ledger. */
export interface SettlerView {
  head: GenerationRow;
  operator: OperatorState;
  planned: PlannedSettlement[];
  /** More withdrawals wait than were looked at. */
  crowded: boolean;
  /** Newest prepared publication of each market, by index. */
  publicationMarks: PublicationMark[];
  /** Balances that changed after the last checkpoint; not read when none is to be cut. */
  changed: CheckpointRow[];
  ackFillSeqs: Record<string, number>;
}

interface ViewDeps {
  db: Db;
  /** Listed markets by index; markets that the ledger lists meanwhile are added. */
  markets: Market[];
  snapshots: SnapshotStore;
  operator: OperatorState | undefined;
}

interface ViewOptions {
  /** Of the last checkpoint, 0 before the first. */
  sinceGeneration: number;
  isCheckpointDue: boolean;
  /** How far back the last settlements of claims matter. */
  settledSinceMs: number;
  /** Whether a withdrawal need not wait, given when its claim was settled last; null for longer ago than `settledSinceMs`. */
  isRipe(claim: PendingClaim, lastSettledMs: number | null): boolean;
  plan(view: PendingView): PlannedSettlement[];
}

/** Reads one state of the ledger and plans on it. Null before the first generation. */
export async function readSettlerView(deps: ViewDeps, options: ViewOptions): Promise<SettlerView | null> {
  return readTx(deps.db, async (q) => {
    const head = await lastGeneration(q);
    if (head === null) return null;
    for (const market of await readMarkets(q)) deps.markets[market.index] ??= market;
    const operator = await readOperatorState(q, deps.operator);
    const lastSettledMs = await lastSettlements(q, options.settledSinceMs);
    const waiting = await readPending(q, operator, options.settledSinceMs);
    const open = await readConcerns(q);
    const unknown = await readUnknownTokens(q, deps.markets, head);
    const isClear = (claim: PendingClaim): boolean =>
      !concerns(open, claim) &&
      !unknown.has(claim.token) &&
      options.isRipe(claim, lastSettledMs.get(claimKey(claim)) ?? null);
    const clear = { funded: waiting.funded.filter(isClear), unfunded: waiting.unfunded.filter(isClear) };
    // Exposure takes the most to read, and only keeps settlements from being sent.
    const isAny = options.plan({ ...clear, worstUnits: () => 0n }).length > 0;
    const worst = isAny ? await readExposure(q, deps, head, new Set(clear.funded.map(({ maker }) => maker))) : null;
    const worstUnits = ({ maker, token }: PendingClaim): bigint => worst?.get(maker)?.get(token)?.worstUnits ?? 0n;
    const planned = isAny ? options.plan({ ...clear, worstUnits }) : [];
    const isCut = options.isCheckpointDue || planned.length > 0;
    return {
      head,
      operator,
      planned,
      crowded: waiting.funded.length >= CANDIDATES_MAX,
      publicationMarks: await readPublicationMarks(q, deps.markets),
      changed: isCut ? await readBalancesSince(q, options.sinceGeneration) : [],
      ackFillSeqs: Object.fromEntries(await fillSeqs(q)),
    };
  });
}

async function readPending(
  q: Queryable,
  { approved, suspended }: OperatorState,
  unsettledSinceMs: number,
): Promise<Omit<PendingView, 'worstUnits'>> {
  const known = new Set([...approved, ...suspended]);
  // Excluded in the query, so that requests in these tokens do not crowd out others.
  const except = [...(await readQuarantined(q))];
  const asked = { funded: true, limit: CANDIDATES_MAX, except } as const;
  const first = await readPendingClaims(q, { ...asked, of: [...known] });
  const fresh = await readPendingClaims(q, { ...asked, unsettledSinceMs, only: 'first' });
  const paidFor = await readPendingClaims(q, { ...asked, unsettledSinceMs, mostPaid: true });
  const others = await readPendingClaims(q, asked);
  const strangers = new Map([...fresh, ...paidFor, ...others].map((claim) => [claimKey(claim), claim]));
  const funded = [...first, ...[...strangers.values()].filter(({ maker }) => !known.has(maker))];
  // Without funds there is nothing to do but to lower a claim that stands, and to clear what was paid for.
  const bare = { ...asked, funded: false } as const;
  const standing = await readPendingClaims(q, { ...bare, only: 'standing' });
  const cleared = await readPendingClaims(q, { ...bare, mostPaid: true });
  const unfunded = [...new Map([...standing, ...cleared].map((claim) => [claimKey(claim), claim])).values()];
  return { funded, unfunded };
}

/**
 * Tokens of markets whose live curve has no stored book: takers can execute it, and it is unknown which makers would pay. Judged by the
 * ledger's own time, so that all of its fills are known when it has expired.
 */
async function readUnknownTokens(
  q: Queryable,
  markets: readonly Market[],
  { blockTimestampMs }: GenerationRow,
): Promise<ReadonlySet<Address>> {
  const unknown = await allOrFirstError(
    markets.map(async ({ index, base, quote }) => {
      const live = await readPostSeen(q, index);
      if (live === null || (live.deadlineSec + DEADLINE_MARGIN_SEC) * 1_000 < blockTimestampMs) return [];
      return (await isSuspendedCurve(q, index, live.seq)) ? [base.address, quote.address] : [];
    }),
  );
  return new Set(unknown.flat());
}

/** Newest prepared publication of each market, by index. */
const readPublicationMarks = (q: Queryable, markets: readonly Market[]): Promise<PublicationMark[]> =>
  allOrFirstError(markets.map(({ index }) => publicationMark(q, index)));
