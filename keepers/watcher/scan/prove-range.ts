import type { Logger } from 'pino';
import type { Address } from '../../../core/types.js';
import type { RpcPool } from '../../chain/pool.js';
import type { ProveBlocks } from './cross-check.js';
import { NoMajorityError } from './majority.js';
import { createProofs } from './proof.js';
import type { Header } from './headers.js';
import { confirmedHeaders, scanRange, type Scan } from './scan.js';

/** Most blocks read at a time. */
const SPAN = 200;

/**
 * The headers of consecutive blocks as a majority of the endpoints has them, lowest first, and no further than it is. Tries the endpoints in turn, and
 * throws as `proveRange`.
 */
export function proveHeaders(pool: RpcPool, range: { from: number; to: number }): Promise<Header[]> {
  const proofs = createProofs({ rpc: pool, prove: 'events', nowMs: () => performance.now() });
  return pool.attempt((one) => confirmedHeaders(one, range, proofs.context(one)));
}

/**
 * Reads a range of blocks again and proves every one of it that can hold an event of `addresses`, from its receipts: for a range whose
 * events are in doubt. Nothing is taken from `eth_getLogs`. The events come in chain order, the blocks in full. What it costs are the
 * receipts of all blocks whose filter names one of the addresses: on a busy rollup nearly every one. With `prove` 'events' only blocks
 * with an answered log are proven, which is what a scan does.
 *
 * Tries the endpoints in turn and penalises those that are wrong. Throws NoMajorityError when the endpoints don't decide what the chain
 * is, or do not have all of the range yet; RpcUnavailableError when none of them answers what fits together.
 */
export async function proveRange(
  pool: RpcPool,
  {
    from,
    to,
    addresses,
    prove = 'all',
  }: { from: number; to: number; addresses: readonly Address[]; prove?: ProveBlocks },
  { nowMs = () => performance.now(), logger }: { nowMs?: () => number; logger?: Pick<Logger, 'warn'> } = {},
): Promise<Scan> {
  const proofs = createProofs({ rpc: pool, prove, nowMs, logger });
  const whole: Scan = { blocks: [], events: [] };
  for (let next = from; next <= to;) {
    const last = whole.blocks.at(-1) ?? null;
    const range = { from: next, to: Math.min(next + SPAN - 1, to), addresses };
    // Without a parent: that a block changed meanwhile is no mismatch of a ledger.
    const scan = await pool.attempt((one) => scanRange(one, { ...range, parent: null }, proofs.context(one)));
    const first = scan.blocks[0];
    if (first === undefined) throw new NoMajorityError(`most endpoints do not have block ${next} yet`);
    if (last !== null && first.parentHash !== last.hash)
      throw new NoMajorityError(`the chain changed at block ${first.number} while it was read`);
    whole.blocks.push(...scan.blocks);
    whole.events.push(...scan.events);
    next = first.number + scan.blocks.length;
  }
  return whole;
}
