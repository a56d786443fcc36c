/** Whether the cause of a halt still exists, and which command repairs it. */
import { isRobbed } from '../../core/holdings.js';
import { servedTokens } from '../../core/operator-row.js';
import type { Address } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { readUnbackedClaim, unbackedMessage } from '../../ledger/chain/claims.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readHalts, type Halt } from '../../ledger/chain/halts.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readQuarantined } from '../../ledger/chain/token-findings.js';
import { readOperatorState } from '../../ledger/operator/operator-log.js';
import { readPostSeen } from '../../ledger/publications/publication-log.js';
import { isSuspendedCurve, readSuspense } from '../../ledger/chain/suspense.js';
import { VAULT, type GenerationRow, type Queryable, type Db } from '../../ledger/types.js';
import type { RpcPool } from '../chain/pool.js';
import { unexplainedFill } from './derive/attributor.js';
import { isConfirmed } from './scan/canonical.js';
import { fillEntries } from '../../ledger/chain/fill-postings.js';
import { ReconcileError } from './reconcile.js';
import { differenceOf, holdingsIfKnown, holdingsVotes, planRepair, type RepairDeps } from './repair.js';
import { NoMajorityError, majorityHeight } from './scan/majority.js';
import { proveHeaders, proveRange } from './scan/prove-range.js';
import type { SeenEvent } from './scan/scan.js';

/** A halt whose cause still exists, and what ends it. */
interface StandingCause {
  halt: Halt;
  /** The cause. */
  message: string;
  /** What to run. */
  remedy: string;
}

interface CauseDeps extends Pick<RepairDeps, 'deploymentBlock' | 'contracts'> {
  db: Db;
  /** Null without an endpoint: causes that only the chain can clear then count as existing. */
  rpc: RpcPool | null;
  operator: Address | null;
  nowMs: number;
}

/** How far back a difference from the chain is looked for: whatever moved tokens was held against the vault with the very next scan. */
const LOOK_BACK_BLOCKS = 1_000;

const RECONCILE = 'curvebook reconcile';

/** Every halt that the watcher found and whose cause stands, oldest first; one per code. */
export async function standingCauses(deps: CauseDeps): Promise<StandingCause[]> {
  const causes: StandingCause[] = [];
  const judged = new Set<string>();
  for (const halt of await readHalts(deps.db.knex)) {
    if (judged.has(halt.code)) continue;
    judged.add(halt.code);
    const cause = await judge(deps, halt);
    if (cause !== null) causes.push({ halt, ...cause });
  }
  return causes;
}

type Judgement = Omit<StandingCause, 'halt'> | null;

async function judge(deps: CauseDeps, halt: Halt): Promise<Judgement> {
  const q = deps.db.knex;
  switch (halt.code) {
    case 'unexplained_curve':
    case 'unexplained_settlement':
    case 'unexplained_execution':
    case 'carry_mismatch':
    case 'missing_depth':
    case 'uncovered_fill':
      return (await openSuspense(q)) ?? (halt.code === 'unexplained_curve' ? await strangeCurve(q, deps.nowMs) : null);
    case 'unbacked_claim':
      return unbacked(q, deps.operator);
    // The finding is booked; the operator has to understand it, which nothing on-chain can show, so the halt may be resumed.
    case 'unexplained_raise':
    case 'operator_loss':
      return null;
    default:
      return ofChain(deps, halt);
  }
}

async function openSuspense(q: Queryable): Promise<Judgement> {
  const { length } = await readSuspense(q, { open: true });
  if (length === 0) return null;
  const message = `${length} ${length === 1 ? 'item is' : 'items are'} in suspense`;
  return { message, remedy: 'curvebook suspense list, then an import from the archive, or curvebook suspense assign' };
}

/** A foreign curve that takers can still execute. */
async function strangeCurve(q: Queryable, nowMs: number): Promise<Judgement> {
  for (const { index, pair } of await readMarkets(q)) {
    const live = await readPostSeen(q, index);
    if (live === null || live.deadlineSec * 1_000 < nowMs) continue;
    if (!(await isSuspendedCurve(q, index, live.seq))) continue;
    const message = `curve ${live.seq} of ${pair}, which was not prepared here, is live for ${live.deadlineSec - Math.floor(nowMs / 1_000)} s`;
    return { message, remedy: 'setPoster(…, false) for whoever posted it, then curvebook resume once it has expired' };
  }
  return null;
}

async function unbacked(q: Queryable, operator: Address | null): Promise<Judgement> {
  const claim = await readUnbackedClaim(q, operator);
  if (claim === null) return null;
  return {
    message: unbackedMessage(claim),
    remedy: `curvebook claim lower ${claim.maker} ${claim.token} <amount>`,
  };
}

async function ofChain(deps: CauseDeps, halt: Halt): Promise<Judgement> {
  const { db, rpc } = deps;
  const head = await lastGeneration(db.knex);
  if (rpc === null || head === null)
    return { message: `${halt.message}; no endpoint (RPC_URL) can say otherwise`, remedy: RECONCILE };
  if (!(await isConfirmed(rpc.endpoints, { number: head.toBlock, hash: head.blockHash }))) {
    const message = `no majority of the endpoints has block ${head.toBlock}, ${head.blockHash}`;
    return { message, remedy: RECONCILE };
  }
  const from = Math.max(deps.deploymentBlock, head.toBlock - LOOK_BACK_BLOCKS);
  const differing = await planRepair(db, rpc, { ...deps, deploymentBlock: from }).catch(otherChain);
  if (differing instanceof ReconcileError) return { message: differing.message, remedy: RECONCILE };
  const lack = await lacking(deps, rpc, head);
  // What nobody's row says is too much, and nothing else, is a guess: what is there again was no invention.
  const isBooked = differing !== null && differing.missing.length + differing.excess.length > 0;
  if (differing !== null && (isBooked || lack !== null)) {
    const bookings = differing.missing.length + differing.excess.length;
    const message = `the ledger differs from the chain from block ${differing.fromBlock} on (${bookings} bookings)`;
    return { message, remedy: RECONCILE };
  }
  return lack;
}

/** The chain may change its blocks while it is compared. */
function otherChain(error: unknown): ReconcileError {
  if (error instanceof ReconcileError && error.code === 'chain_changed') return error;
  throw error;
}

/**
 * What the vault lacks at the newest scanned block and at the chain's newest one, if that is a halting shortfall (`isRobbed`). Amounts paid
 * in since are counted, several endpoints must say that nothing is missing, and a shortfall that leaves other tokens complete is left to the next scan, which puts the token in quarantine.
 */
async function lacking({ db, contracts }: CauseDeps, rpc: RpcPool, head: GenerationRow): Promise<Judgement> {
  const q = db.knex;
  const known = await holdingsIfKnown(q, rpc, contracts.custodian, head);
  // Of a block without state nobody knows, so every token is looked at.
  if (known !== null && !known.some(({ units }) => units < 0n)) return null;
  const { delisted } = await readOperatorState(q);
  const tokens = servedTokens((await readMarkets(q)).filter(({ index }) => !delisted.has(index)));
  const height = await majorityHeight(rpc);
  const top = (await proveHeaders(rpc, { from: height, to: height })).at(0);
  if (top === undefined) throw new NoMajorityError(`most endpoints do not have block ${height} yet`);
  const addresses = [contracts.custodian, contracts.curveBook, contracts.entrypoint];
  if (contracts.orderSettler !== undefined) addresses.push(contracts.orderSettler);
  const since = { from: head.toBlock + 1, to: top.number, addresses, prove: 'events' as const };
  const { events } = top.number > head.toBlock ? await proveRange(rpc, since) : { events: [] };
  const moved = await vaultMoves(q, events);
  const vault = new Map((await readBalances(q, { account: VAULT })).map((row) => [row.token, -row.balanceUnits]));
  const addressesOf = tokens.map(({ address }) => address);
  const votes = await holdingsVotes(rpc, contracts.custodian, addressesOf, top);
  if (votes === null) throw new NoMajorityError(`too few endpoints say what the vault holds at block ${top.number}`);
  const quarantined = await readQuarantined(q);
  const compared = addressesOf.map((token) => {
    const expectedUnits = (vault.get(token) ?? 0n) + (moved.get(token) ?? 0n);
    const units = differenceOf(votes.get(token)!, expectedUnits);
    const lackUnits = units === null ? null : -units;
    // A token that is there again is whole, although it stays in quarantine for a calm minute.
    const isQuarantined = lackUnits === null || (lackUnits !== 0n && quarantined.has(token));
    return { token, expectedUnits, lackUnits, isShort: (lackUnits ?? 0n) > 0n, isQuarantined };
  });
  if (!isRobbed(compared)) return null;
  const lacks = compared.filter(({ isShort }) => isShort).map((one) => `${one.lackUnits} units of ${one.token}`);
  return {
    message: `the vault lacks ${lacks.join(', ')} at block ${top.number}, and all events are booked`,
    remedy: 'make up for what is missing (runbook, Shortfall), then curvebook resume',
  };
}

/** What events brought into the vault, by token. */
async function vaultMoves(q: Queryable, events: readonly SeenEvent[]): Promise<Map<Address, bigint>> {
  const markets = await readMarkets(q);
  const moved = new Map<Address, bigint>();
  const add = (token: Address, units: bigint): void => void moved.set(token, (moved.get(token) ?? 0n) + units);
  for (const { event } of events) {
    if (event.type === 'deposited') add(event.token, event.amountUnits);
    if (event.type === 'executed') add(event.token, -event.amountUnits);
    if (event.type === 'orderFilled' && !event.feeInSwap) add(event.tokenIn, event.feeUnits);
    const market = event.type === 'swap' ? markets.find(({ id }) => id === event.marketId) : undefined;
    if (event.type !== 'swap' || market === undefined) continue;
    const fill = { ...event, market: market.index, side: event.isBuy ? ('ask' as const) : ('bid' as const) };
    const lines = fillEntries(market, fill, unexplainedFill(fill), market.base.address);
    for (const { account, token, amountUnits } of lines) if (account === VAULT) add(token, -amountUnits);
  }
  return moved;
}
