import type { Logger } from 'pino';
import { readTx } from '../../ledger/db/db.js';
import { blockAt, newestBlocks, oldestBlock } from '../../ledger/chain/blocks.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import {
  balancesReversed,
  newestWithin,
  type BalanceDelta,
  type ReversalRequest,
} from '../../ledger/chain/reversals.js';
import { listOrphans, type Orphans } from '../../ledger/chain/orphans.js';
import type { Db, GenerationRow, Queryable, ScannedBlock } from '../../ledger/types.js';
import type { RpcPool } from '../chain/pool.js';
import { confirmMismatch, isConfirmed, isOnChain, type KnownBlock } from './scan/canonical.js';
import type { Header } from './scan/headers.js';
import { NoMajorityError, majorityHeight } from './scan/majority.js';
import { proveHeaders } from './scan/prove-range.js';

/** Most blocks that a reorganisation removes on a healthy chain. A deeper one needs its own option, and investigation first. */
export const MAX_REORG_BLOCKS = 64;

type ReconcileErrorCode =
  'nothing_scanned' | 'node_behind' | 'not_confirmed' | 'chain_changed' | 'reorg_too_deep' | 'deployment_gone';

/** The ledger can't be reconciled with the chain as it is now. Nothing was changed. */
export class ReconcileError extends Error {
  override readonly name = 'ReconcileError';

  constructor(
    readonly code: ReconcileErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** What a reconciliation would do. */
export interface ReconcilePlan {
  reversal: ReversalRequest;
  /** First and last block that the ledger has and the chain no longer has. */
  orphanedBlocks: { from: number; to: number };
  /** Scans that would be taken back; blocks of them that are still on the chain are read anew. */
  generations: number;
  /** What would be gone, and whom it was told to. */
  orphans: Orphans;
  /** What balances would change by before the chain is read anew. */
  balances: BalanceDelta[];
}

/**
 * Compares the newest blocks of the ledger with the chain, as the majority of the endpoints has it: no single endpoint can hide a
 * reorganisation, invent one, or say that the chain is behind. Returns null when nothing is to be taken back. Reads only. Throws
 * ReconcileError, `not_confirmed` where the endpoints don't decide it, `reorg_too_deep` for more than MAX_REORG_BLOCKS unless `deep` says that
 * they may be taken back: then a majority must also agree on the last block that is kept.
 */
export async function planReconcile(
  db: Db,
  rpc: RpcPool,
  options: { deploymentBlock: number; deep?: boolean },
): Promise<ReconcilePlan | null> {
  try {
    return await planOf(db, rpc, options);
  } catch (error) {
    if (error instanceof NoMajorityError) throw new ReconcileError('not_confirmed', error.message);
    throw error;
  }
}

async function planOf(
  db: Db,
  rpc: RpcPool,
  { deploymentBlock, deep = false }: Parameters<typeof planReconcile>[2],
): Promise<ReconcilePlan | null> {
  const head = await lastGeneration(db.knex);
  if (head === null) throw new ReconcileError('nothing_scanned', 'the ledger has not scanned a block yet');
  // One more than may be taken back, so that the last one that must be common is among them.
  const ours = await newestBlocks(db.knex, MAX_REORG_BLOCKS + 1);
  const chain = await readChain(rpc, ours, head);
  const near = commonBlock(ours, chain, head);
  if (near === head.toBlock) return null;
  const common = near ?? (await commonFurther(db.knex, rpc, { oldest: ours.at(-1)!, deploymentBlock, deep }));
  const firstOrphan = (await blockAt(db.knex, common + 1))!;
  if ((await confirmMismatch(rpc.endpoints, firstOrphan)) === null) {
    throw new ReconcileError(
      'not_confirmed',
      `no majority of the RPC endpoints says that block ${firstOrphan.number} is another one than ${firstOrphan.hash}`,
    );
  }
  return readTx(db, (q) => describe(q, rpc, head, common, deploymentBlock));
}

/** The chain's blocks at the same heights, as far as a majority of the endpoints has them. */
async function readChain(rpc: RpcPool, ours: readonly ScannedBlock[], head: GenerationRow): Promise<Header[]> {
  const from = ours.at(-1)?.number ?? head.toBlock;
  const reached = await majorityHeight(rpc);
  const chain = await proveHeaders(rpc, { from, to: Math.min(reached, head.toBlock) });
  const top = chain.at(-1)?.number ?? Math.min(reached, from - 1);
  const behind = top < head.toBlock;
  if (behind && chain.every((block) => ours.find(({ number }) => number === block.number)?.hash === block.hash)) {
    throw new ReconcileError(
      'node_behind',
      `the chain ends at block ${top} and block ${head.toBlock} is scanned; wait for the node`,
    );
  }
  return chain;
}

/** The newest block of ours that the chain has; null when none of them is, and older ones may be. */
function commonBlock(ours: readonly ScannedBlock[], chain: readonly Header[], head: GenerationRow): number | null {
  if (ours.length === 0) return head.toBlock;
  const hashes = new Map(chain.map((block) => [block.number, block.hash]));
  const common = ours.find((block) => hashes.get(block.number) === block.hash);
  if (common !== undefined) return common.number;
  const oldest = ours[ours.length - 1]!;
  if (ours.length <= MAX_REORG_BLOCKS) return oldest.number - 1;
  return null;
}

/** Looks for the newest common block among older ones: whatever lies before one that both have, both have. */
async function commonFurther(
  q: Queryable,
  rpc: RpcPool,
  { oldest, deploymentBlock, deep }: { oldest: ScannedBlock; deploymentBlock: number; deep: boolean },
): Promise<number> {
  if (!deep) {
    throw new ReconcileError(
      'reorg_too_deep',
      `block ${oldest.number} has changed, too: more than ${MAX_REORG_BLOCKS} blocks are only taken back with --deep`,
    );
  }
  const common = (await firstLost(q, rpc.endpoints, { from: deploymentBlock, known: oldest })) - 1;
  const kept = await blockAt(q, common);
  if (kept !== null && !(await isConfirmed(rpc.endpoints, kept))) {
    throw new ReconcileError(
      'not_confirmed',
      `no majority of the RPC endpoints has block ${kept.number}, ${kept.hash}`,
    );
  }
  return common;
}

/**
 * The lowest block from `from` on that the ledger has and a majority of the endpoints does not, given that it does not have `known`: whatever lies
 * before one that both have, both have. Throws NoMajorityError.
 */
async function firstLost(
  q: Queryable,
  endpoints: RpcPool['endpoints'],
  { from, known }: { from: number; known: KnownBlock },
): Promise<number> {
  let [common, lost] = [from - 1, known.number];
  while (lost - common > 1) {
    const middle = Math.floor((common + lost) / 2);
    const ours = await blockAt(q, middle);
    const isCommon = ours === null || (await isOnChain(endpoints, ours));
    if (isCommon === null) throw new NoMajorityError(`the endpoints don't decide whether block ${middle} is lost`);
    if (isCommon) common = middle;
    else lost = middle;
  }
  return lost;
}

/**
 * Whether the chain still has the newest scanned block, and with it all before, so that blocks may be read again without anything being lost:
 * true when a majority of the endpoints has it, false while none says so. Throws ReconcileError `chain_changed` when a majority has another one: what
 * the ledger holds of lost blocks must be taken back as lost, or what was settled for a lost request would be sent again.
 */
export async function isSameChain(endpoints: RpcPool['endpoints'], newest: KnownBlock): Promise<boolean> {
  const isCommon = await isOnChain(endpoints, newest);
  if (isCommon !== false) return isCommon === true;
  throw new ReconcileError(
    'chain_changed',
    `the chain has lost block ${newest.number}, ${newest.hash}; reconcile once more`,
  );
}

/**
 * First block that is lost, so that nobody is told any more of what it held; where that can't be found out now, the one that was seen to be.
 */
export async function lostSince(
  q: Queryable,
  endpoints: RpcPool['endpoints'],
  { from, known, logger }: { from: number; known: KnownBlock; logger: Logger },
): Promise<number> {
  try {
    return await firstLost(q, endpoints, { from, known });
  } catch (error) {
    logger.warn({ err: error }, 'the first lost block could not be found');
    return known.number;
  }
}

async function describe(
  q: Queryable,
  rpc: RpcPool,
  head: GenerationRow,
  common: number,
  deploymentBlock: number,
): Promise<ReconcilePlan> {
  const kept = await newestWithin(q, common);
  const keptGeneration = kept?.generation ?? 0;
  const block =
    kept === null
      ? await blockBefore(q, rpc, deploymentBlock)
      : { number: kept.toBlock, hash: kept.blockHash, timestampMs: kept.blockTimestampMs };
  return {
    reversal: { headGeneration: head.generation, keptGeneration, block, depth: head.toBlock - common },
    orphanedBlocks: { from: common + 1, to: head.toBlock },
    generations: head.generation - keptGeneration,
    orphans: await listOrphans(q, common),
    balances: await balancesReversed(q, { headGeneration: head.generation, keptGeneration }),
  };
}

/** What stands before the first scan. Throws ReconcileError when the chain has lost that, too. */
async function blockBefore(q: Queryable, rpc: RpcPool, deploymentBlock: number): Promise<ReversalRequest['block']> {
  const first = await oldestBlock(q);
  if (first === null) throw new ReconcileError('nothing_scanned', 'the ledger has no block');
  const before = { from: first.number - 1, to: first.number - 1 };
  const [header] = first.number === 0 ? [] : await proveHeaders(rpc, before);
  if (header === undefined || header.hash !== first.parentHash || first.number > deploymentBlock) {
    throw new ReconcileError('deployment_gone', `the chain has lost block ${first.number - 1}, before the deployment`);
  }
  return { number: header.number, hash: header.hash, timestampMs: header.timestampSec * 1_000 };
}
