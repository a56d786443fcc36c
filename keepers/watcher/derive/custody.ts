/** State of the withdrawals that a scan's events concern, before the scan. */
import {
  NO_CLAIM,
  addSaturating,
  afterExecution,
  afterRequest,
  afterSettlement,
  type LaterRequests,
} from '../../../core/claim-state.js';
import { maxBig, minBig, toSafeInt, MAX_U128 } from '../../../core/amounts.js';
import { addGas, eventGas, paysGas } from '../../../core/settle-gas.js';
import type { Address } from '../../../core/types.js';
import { readClaimsOf, requestsAfter, unbackedMessage } from '../../../ledger/chain/claims.js';
import { readReversals } from '../../../ledger/chain/reversals.js';
import { explainSettlement, isLost } from '../../../ledger/settlements/settlement-log.js';
import {
  isAddress,
  type BalanceRow,
  type ClaimRow,
  type CustodyEvent,
  type GenerationWrite,
  type Queryable,
  type Settlement,
} from '../../../ledger/types.js';
import type { ChainEvent, RawLog } from '../../chain/logs.js';
import type { SeenEvent } from '../scan/scan.js';

/** A settlement that this database prepared, and the requests of earlier scans that it does not cover. */
interface ExplainedSettlement {
  settlement: Pick<Settlement, 'settlementNo' | 'cutBlock'>;
  later: LaterRequests;
  /** A reorganisation removed the blocks of its cut. */
  lost: boolean;
}

export interface ClaimContext {
  /** Claims before the scan, by `claimKey`; those that were never touched are missing. */
  claims: ReadonlyMap<string, ClaimRow>;
  /** Explained settlements of the scan, by `logKey`. */
  settlements: ReadonlyMap<string, ExplainedSettlement>;
  /** How many requests and executions are in each transaction of the scan. */
  calls: ReadonlyMap<string, number>;
}

const claimKey = ({ maker, token }: { maker: Address; token: Address }): string => `${maker}:${token}`;
export const logKey = ({ txHash, logIndex }: { txHash: string; logIndex: number }): string => `${txHash}:${logIndex}`;

/** A scan without custody events has nothing to look up. */
export const NO_CLAIMS: ClaimContext = { claims: new Map(), settlements: new Map(), calls: new Map() };

/** Looks up what `createClaimReplay` needs for the events of a scan. */
export async function readClaimContext(q: Queryable, events: readonly SeenEvent[]): Promise<ClaimContext> {
  const makers = events.flatMap(({ event }) => (isCustodyEvent(event) ? [event.maker] : []));
  if (makers.length === 0) return NO_CLAIMS;
  const claims = new Map((await readClaimsOf(q, makers)).map((claim) => [claimKey(claim), claim]));
  const settlements = new Map<string, ExplainedSettlement>();
  const taken = new Set<number>();
  const reversals = events.some(({ event }) => event.type === 'settled') ? await readReversals(q) : [];
  for (const { log, event } of events) {
    if (event.type !== 'settled') continue;
    const settlement = await explainSettlement(q, { ...event, txHash: log.txHash }, taken);
    if (settlement === null) continue;
    taken.add(settlement.settlementNo);
    const later = await requestsAfter(q, event, settlement.cutBlock);
    settlements.set(logKey(log), { settlement, later, lost: isLost(settlement, reversals) });
  }
  return { claims, settlements, calls: countCalls(events) };
}

/** All of a transaction are in one scan. */
function countCalls(events: readonly SeenEvent[]): Map<string, number> {
  const calls = new Map<string, number>();
  for (const { log, event } of events)
    if (isCustodyEvent(event) && paysGas(event.type)) calls.set(log.txHash, (calls.get(log.txHash) ?? 0) + 1);
  return calls;
}

const paidGasOf = ({ calls }: ClaimContext, { txHash }: RawLog, { type }: CustodyChainEvent): bigint =>
  eventGas(type, calls.get(txHash) ?? 1);

/** An event of the custodian. */
export type CustodyChainEvent = Extract<ChainEvent, { type: 'deposited' | 'requested' | 'executed' | 'settled' }>;

function isCustodyEvent(event: ChainEvent): event is CustodyChainEvent {
  return ['deposited', 'requested', 'settled', 'executed'].includes(event.type);
}

/** Replays the withdrawals of one scan, event by event in chain order. */
export interface ClaimReplay {
  /** A deposit changes no withdrawal. */
  apply(log: RawLog, event: CustodyChainEvent): void;
  /** Claims as the events left them. */
  changed(): ClaimRow[];
  /** What that does to reservations; changes of nothing are left out. */
  reservations(): GenerationWrite['reservations'];
}

/** Starts a replay on what was known before the scan. */
export function createClaimReplay(context: ClaimContext): ClaimReplay {
  const changed = new Map<string, ClaimRow>();
  const requests: { key: string; units: bigint; paidGas: bigint; blockNumber: number }[] = [];

  const before = (key: string, { maker, token }: CustodyChainEvent): ClaimRow =>
    context.claims.get(key) ?? { maker, token, ...NO_CLAIM };

  /** Requests of earlier scans and of this one so far, mined after the settlement's cut. */
  function laterRequests(key: string, { settlement, later }: ExplainedSettlement): LaterRequests {
    const inScan = requests.filter((one) => one.key === key && one.blockNumber > settlement.cutBlock);
    return {
      units: inScan.reduce((sum, { units }) => addSaturating(sum, units), later.units),
      sinceBlock: later.sinceBlock ?? inScan[0]?.blockNumber ?? null,
      paidGas: inScan.reduce((sum, { paidGas }) => addGas(sum, paidGas), later.paidGas),
    };
  }

  /** The requests that an unexplained settlement covers are unknown, so every pending request stays pending. */
  const allPending = (claim: ClaimRow): LaterRequests => ({
    units: maxBig(claim.outstandingUnits - claim.claimUnits, 0n),
    sinceBlock: claim.pendingSinceBlock,
    paidGas: claim.paidGas,
  });

  return {
    apply(log, event) {
      const key = claimKey(event);
      const claim = changed.get(key) ?? before(key, event);
      const call = { units: event.amountUnits, paidGas: paidGasOf(context, log, event) };
      if (event.type === 'requested') {
        requests.push({ key, ...call, blockNumber: log.blockNumber });
        changed.set(key, { ...claim, ...afterRequest(claim, call, log.blockNumber) });
      } else if (event.type === 'executed') {
        changed.set(key, { ...claim, ...afterExecution(claim, call) });
      } else if (event.type === 'settled') {
        const explained = context.settlements.get(logKey(log));
        const later = explained === undefined ? allPending(claim) : laterRequests(key, explained);
        const settled = {
          units: event.amountUnits,
          readyAtSec: readyAtSec(event),
          blockNumber: log.blockNumber,
          lost: explained?.lost ?? false,
        };
        changed.set(key, { ...claim, ...afterSettlement(claim, settled, later) });
      }
    },
    changed: () => [...changed.values()],
    reservations: () =>
      [...changed.entries()].flatMap(([key, { maker, token, outstandingUnits }]) => {
        const deltaUnits = outstandingUnits - (context.claims.get(key)?.outstandingUnits ?? 0n);
        return deltaUnits === 0n ? [] : [{ account: maker, token, deltaUnits }];
      }),
  };
}

/** Seconds of chain time; a delay beyond what JSON holds exactly means never. */
function readyAtSec(event: Extract<ChainEvent, { type: 'settled' }>): number {
  return toSafeInt(minBig(event.readyAtSec, 2n ** 53n - 1n));
}

/** The event as the ledger log keeps it. */
export function custodyEvent(log: RawLog, event: CustodyChainEvent, context: ClaimContext): CustodyEvent {
  const settled = event.type === 'settled' ? event : null;
  return {
    kind: event.type,
    maker: event.maker,
    token: event.token,
    amountUnits: minBig(event.amountUnits, MAX_U128),
    basis: settled?.basis ?? null,
    readyAtSec: settled === null ? null : readyAtSec(settled),
    settlementNo: context.settlements.get(logKey(log))?.settlement.settlementNo ?? null,
    paidGas: paidGasOf(context, log, event),
    blockNumber: log.blockNumber,
    txHash: log.txHash,
    logIndex: log.logIndex,
  };
}

/**
 * A claim above the ledger balance that should pay for it. The settlement rule makes that impossible, so a deposit or a fill must have
 * changed since the claim was settled. The operator's row is not checked: it may be negative, and a rounded sale after a claim for its
 * whole balance must not halt the ledger. `balanceUnits` answers for after the scan.
 */
export async function unbackedClaim(
  q: Queryable,
  write: Pick<GenerationWrite, 'entries' | 'claims'>,
  operator: Address,
  balanceUnits: (account: BalanceRow['account'], token: Address) => bigint,
): Promise<{ code: string; message: string } | null> {
  const changed = new Map(write.claims.map((claim) => [claimKey(claim), claim]));
  const makers = write.entries.flatMap(({ account }) => (isAddress(account) ? [account] : []));
  const stored = makers.length === 0 ? [] : await readClaimsOf(q, makers);
  for (const claim of [...changed.values(), ...stored.filter((one) => !changed.has(claimKey(one)))]) {
    const { maker, token, claimUnits } = claim;
    const held = balanceUnits(maker, token);
    if (maker === operator || claimUnits === 0n || claimUnits <= held) continue;
    return { code: 'unbacked_claim', message: unbackedMessage({ maker, token, claimUnits, balanceUnits: held }) };
  }
  return null;
}
