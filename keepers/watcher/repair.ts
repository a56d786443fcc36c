/** Finds bookings that differ from the chain, and the block from which the chain is to be read again. */
import { judgeHoldings, type Said } from '../../core/holdings.js';
import type { Address, Hex } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { blockAt } from '../../ledger/chain/blocks.js';
import { toChainFill } from '../../ledger/chain/fills.js';
import { liveRanges } from '../../ledger/chain/branches.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import {
  balancesReversed,
  readReversals,
  rereadFrom,
  type BalanceDelta,
  type ReversalRequest,
} from '../../ledger/chain/reversals.js';
import { UNATTRIBUTED, VAULT, type Db, type GenerationRow, type Queryable } from '../../ledger/types.js';
import type { RpcPool } from '../chain/pool.js';
import { NO_CLAIMS, custodyEvent } from './derive/custody.js';
import { ReconcileError } from './reconcile.js';
import type { KnownBlock } from './scan/canonical.js';
import type { ProveBlocks } from './scan/cross-check.js';
import { majorityOf } from './scan/majority.js';
import { proveRange } from './scan/prove-range.js';
import type { SeenEvent } from './scan/scan.js';
import { StateMissingError, readBalancesAt } from './tokens/tokens.js';
import { readRows, type RowFilter } from '../../ledger/db/rows.js';
import { readSurpluses, type PlacedTable } from '../../ledger/views/audit.js';

/** One event as it is booked, or should be. */
interface Booking {
  kind: 'deposited' | 'requested' | 'settled' | 'executed' | 'fill' | 'curve' | 'numbers' | 'order' | 'listing';
  blockNumber: number;
  txHash: Hex;
  /** Whose row it moves first: the maker's, taker's or owner's; null of a curve or a listing. */
  account: Address | null;
  /** What it says, in words and smallest units. */
  what: string;
}

export interface RepairPlan {
  reversal: ReversalRequest;
  /** First block that is read anew. */
  fromBlock: number;
  /** Scans that are taken back. */
  generations: number;
  /** On the chain and not in the ledger. */
  missing: Booking[];
  /** In the ledger and not on the chain. */
  excess: Booking[];
  /** What the vault has beyond what all rows say together at the newest scanned block; only where all events are booked. */
  differences: { token: Address; units: bigint }[];
  /** What balances change by before the chain is read anew. */
  balances: BalanceDelta[];
}

export interface RepairDeps {
  deploymentBlock: number;
  contracts: { custodian: Address; curveBook: Address; entrypoint: Address; orderSettler?: Address | undefined };
  /** Read anew from this block on, whether or not anything differs; without it from the first difference on. */
  from?: number | undefined;
  onProgress?(done: number, total: number): void;
}

/** Blocks read at a time. */
const SPAN = 200;

/**
 * Compares everything that is booked with the chain, from the deployment or from a block on. Returns null when nothing differs. Reads only.
 * The chain is proven as a scan proves it; where it seems to differ from what is booked, every block that may hold an event of ours is proven from its
 * receipts before that is said. Throws ReconcileError, `chain_changed` where the chain has other blocks than the ledger, NoMajorityError when the endpoints don't decide what the chain is, and RpcUnavailableError when
 * none of them answers what fits together.
 */
export async function planRepair(db: Db, rpc: RpcPool, deps: RepairDeps): Promise<RepairPlan | null> {
  const { contracts, deploymentBlock } = deps;
  const addresses = [contracts.custodian, contracts.curveBook, contracts.entrypoint];
  if (contracts.orderSettler !== undefined) addresses.push(contracts.orderSettler);
  const q = db.knex;
  const head = await lastGeneration(q);
  if (head === null) throw new ReconcileError('nothing_scanned', 'the ledger has not scanned a block yet');
  const start = Math.max(deps.from ?? deploymentBlock, deploymentBlock);
  const ids = new Map((await readMarkets(q)).map(({ id, index }) => [id, index]));
  const missing: Booking[] = [];
  const excess: Booking[] = [];
  for (let from = start; from <= head.toBlock; from += SPAN) {
    const to = Math.min(from + SPAN - 1, head.toBlock);
    const booked = await readBooked(q, from, to);
    const compare = async (prove: ProveBlocks) => {
      const { blocks, events } = await proveRange(rpc, { from, to, addresses, prove });
      await requireSame(q, head, blocks.at(-1)!);
      const seen = events.flatMap((one) => ofEvent(one, ids));
      return { missing: without(seen, booked), excess: without(booked, seen) };
    };
    let differing = await compare('events');
    if (differing.missing.length + differing.excess.length > 0) differing = await compare('all');
    missing.push(...differing.missing);
    excess.push(...differing.excess);
    deps.onProgress?.(to - start + 1, head.toBlock - start + 1);
  }
  const isFound = deps.from !== undefined || missing.length + excess.length > 0;
  // Only looked at where it decides; most endpoints have no state of a block that is a few minutes old.
  const differences = isFound ? [] : ((await holdingsIfKnown(q, rpc, contracts.custodian, head)) ?? []);
  const first = Math.min(...[...missing, ...excess].map(({ blockNumber }) => blockNumber));
  const fromBlock = deps.from ?? (Number.isFinite(first) ? first : await firstSurplus(q, differences));
  if (fromBlock === null) return null;
  const reversal = await rereadFrom(q, fromBlock);
  if (reversal === null)
    throw new ReconcileError(
      'nothing_scanned',
      `block ${fromBlock} was not scanned yet; there is nothing to read anew`,
    );
  return {
    reversal,
    fromBlock: reversal.block.number + 1,
    generations: reversal.headGeneration - reversal.keptGeneration,
    missing,
    excess,
    differences,
    balances: await balancesReversed(q, reversal),
  };
}

/**
 * Throws ReconcileError unless the ledger has this block, and with it all before: what differs because of other blocks must be taken back as
 * a reorganisation, or what was settled for a lost request would be sent again.
 */
async function requireSame(q: Queryable, head: GenerationRow, { number, hash }: KnownBlock): Promise<void> {
  const ours = number === head.toBlock ? head.blockHash : ((await blockAt(q, number))?.hash ?? hash);
  if (ours === hash) return;
  throw new ReconcileError('chain_changed', `the chain has ${hash} as block ${number}, the ledger ${ours}; try again`);
}

const keyOf = ({ kind, blockNumber, txHash, what }: Booking): string => `${kind} ${blockNumber} ${txHash} ${what}`;

/** Those of `all` that `others` lack; several that are alike count one by one. */
function without(all: readonly Booking[], others: readonly Booking[]): Booking[] {
  const left = new Map<string, number>();
  for (const one of others) left.set(keyOf(one), (left.get(keyOf(one)) ?? 0) + 1);
  return all.filter((one) => {
    const count = left.get(keyOf(one)) ?? 0;
    left.set(keyOf(one), count - 1);
    return count <= 0;
  });
}

function ofEvent({ log, event }: SeenEvent, ids: ReadonlyMap<Hex, number>): Booking[] {
  const at = { blockNumber: log.blockNumber, txHash: log.txHash };
  const market = (id: Hex): string => (ids.has(id) ? `market ${ids.get(id)}` : `market ${id}`);
  switch (event.type) {
    case 'deposited':
    case 'requested':
    case 'settled':
    case 'executed': {
      const { amountUnits } = custodyEvent(log, event, NO_CLAIMS);
      const what = `${amountUnits} units of ${event.token}, log ${log.logIndex}`;
      return [{ ...at, kind: event.type, account: event.maker, what: `${event.maker} ${what}` }];
    }
    case 'swap': {
      const { fillSeq, curveSeq, baseUnits, quoteUnits, taker } = event;
      const what = `fill ${fillSeq} of ${market(event.marketId)} on curve ${curveSeq}: ${taker} ${event.isBuy ? 'bought' : 'sold'}`;
      return [{ ...at, kind: 'fill', account: taker, what: `${what} ${baseUnits} base units for ${quoteUnits}` }];
    }
    case 'posted':
    case 'touched':
      return [{ ...at, kind: 'curve', account: null, what: `curve ${event.seq} of ${market(event.marketId)}` }];
    case 'seqSet':
      return [
        {
          ...at,
          kind: 'numbers',
          account: null,
          what: `numbers of ${market(event.marketId)} go on above ${event.seq}`,
        },
      ];
    case 'orderFilled': {
      const { owner, nonce, amountInUnits, tokenIn, amountOutUnits, tokenOut } = event;
      const what = `order ${nonce} of ${owner}: ${amountInUnits} units of ${tokenIn} for ${amountOutUnits} of ${tokenOut}`;
      return [{ ...at, kind: 'order', account: owner, what }];
    }
    // Part of the order's event before it.
    case 'partnerOrderFilled':
      return [];
    case 'listed':
      return ids.has(event.marketId) ? [] : [{ ...at, kind: 'listing', account: null, what: `market ${event.index}` }];
  }
}

async function readBooked(q: Queryable, from: number, to: number): Promise<Booking[]> {
  const inBlocks = { between: ['block_number', from, to] } as const satisfies RowFilter<PlacedTable>;
  const custody = (await readRows(q, 'custody_events', inBlocks)).map((row): Booking => ({
    ...{ kind: row.kind, blockNumber: row.block_number, txHash: row.tx_hash, account: row.maker },
    what: `${row.maker} ${row.amount_units} units of ${row.token}, log ${row.log_index}`,
  }));
  const fills = (await readRows(q, 'fills', inBlocks)).map(toChainFill).map((fill): Booking => {
    const { fillSeq, curveSeq, baseUnits, quoteUnits, taker, market, blockNumber, txHash } = fill;
    const done = fill.side === 'ask' ? 'bought' : 'sold';
    const what = `fill ${fillSeq} of market ${market} on curve ${curveSeq}: ${taker} ${done} ${baseUnits} base units for ${quoteUnits}`;
    return { kind: 'fill', blockNumber, txHash, account: taker, what };
  });
  const posts = (await readRows(q, 'posts_seen', inBlocks)).map((row): Booking => ({
    ...{ kind: 'curve', blockNumber: row.block_number, txHash: row.tx_hash, account: null },
    what: `curve ${row.seq} of market ${row.market}`,
  }));
  const resets = (await readRows(q, 'seq_resets', inBlocks)).map((row): Booking => ({
    ...{ kind: 'numbers', blockNumber: row.block_number, txHash: row.tx_hash, account: null },
    what: `numbers of market ${row.market} go on above ${row.seq}`,
  }));
  const orders = (await readRows(q, 'settled_orders', inBlocks)).map((row): Booking => ({
    ...{ kind: 'order', blockNumber: row.block_number, txHash: row.tx_hash, account: row.owner },
    what:
      `order ${row.nonce} of ${row.owner}: ${row.amount_in_units} units of ${row.token_in} for ` +
      `${row.amount_out_units} of ${row.token_out}`,
  }));
  return [...custody, ...fills, ...posts, ...resets, ...orders];
}

/**
 * What the vault has of each token at the newest scanned block beyond the rows; tokens that do not say are left out. Null where too few endpoints have
 * state of that block to decide it.
 */
export async function holdingsIfKnown(
  q: Queryable,
  rpc: RpcPool,
  custodian: Address,
  head: { toBlock: number; blockHash: Hex },
): Promise<RepairPlan['differences'] | null> {
  const tokens = [...new Set((await readMarkets(q)).flatMap(({ base, quote }) => [base.address, quote.address]))];
  const vault = new Map((await readBalances(q, { account: VAULT })).map((row) => [row.token, -row.balanceUnits]));
  const block = { number: head.toBlock, hash: head.blockHash };
  const votes = await holdingsVotes(rpc, custodian, tokens, block).catch((error: unknown) => {
    if (error instanceof StateMissingError) return null;
    throw error;
  });
  if (votes === null) return null;
  return tokens.flatMap((token) => {
    const units = differenceOf(votes.get(token)!, vault.get(token) ?? 0n) ?? 0n;
    return units === 0n ? [] : [{ token, units }];
  });
}

/** What each endpoint says that the vault holds at a block, one vote each; null where no majority of all endpoints says anything. */
export async function holdingsVotes(
  rpc: RpcPool,
  custodian: Address,
  tokens: readonly Address[],
  block: KnownBlock,
): Promise<Map<Address, Said[]> | null> {
  const needed = majorityOf(rpc.endpoints.length);
  const votes = await rpc.survey((one) => readBalancesAt(one, custodian, tokens, block), needed);
  if (votes.length < needed) return null;
  return new Map(tokens.map((token) => [token, votes.flatMap(({ answer }) => answer.get(token) ?? [])]));
}

/**
 * What the vault has of a token beyond what is expected, by as many endpoints as it takes to believe it; where they contradict each other, the
 * least that one says, so that none of them hides a loss. Null when none says a balance.
 */
export function differenceOf(votes: readonly Said[], expectedUnits: bigint): bigint | null {
  const verdict = judgeHoldings(votes, expectedUnits);
  switch (verdict.kind) {
    case 'agreed':
      return 0n;
    case 'silent':
      return null;
    case 'different':
    case 'doubt':
      return verdict.differenceUnits;
    case 'contradicted':
      return votes
        .filter((one) => typeof one === 'bigint')
        .reduce((least, units) => (units - expectedUnits < least ? units - expectedUnits : least), 0n);
  }
}

/**
 * When all events are booked and tokens are missing, an unattributed surplus may have been booked that the vault never had: returns the
 * block of the newest such bookings that add up to the missing amount. Null when they do not, so that the loss has another cause.
 */
async function firstSurplus(q: Queryable, differences: RepairPlan['differences']): Promise<number | null> {
  let first: number | null = null;
  const reversals = await readReversals(q);
  // A reversal's own generation takes back what is not live any more.
  const empty = new Set(reversals.map(({ generation }) => generation));
  const head = await lastGeneration(q);
  const live = liveRanges(reversals, head?.generation ?? 0);
  for (const { token, units } of differences) {
    if (units > 0n) continue;
    const rows = await readSurpluses(q, UNATTRIBUTED, token);
    let lackUnits = -units;
    let oldest: number | null = null;
    for (const row of rows.filter(
      ({ generation }) => !empty.has(generation) && live.some(({ from, to }) => from <= generation && generation <= to),
    )) {
      if (lackUnits <= 0n) break;
      lackUnits -= BigInt(row.amount_units);
      oldest = Math.min(oldest ?? row.from_block, row.from_block);
    }
    if (lackUnits > 0n || oldest === null) continue;
    first = Math.min(first ?? oldest, oldest);
  }
  return first;
}
