/** Gas that owners' code takes to check a signature, for fees. */
import type { Address, Hex } from '../../core/types.js';
import { bytesOf } from '../../liquidity/eth.js';
import type { JoinedReads } from '../../liquidity/joined-reads.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';
import { DEFAULT_CHECK_GAS, signatureGas } from './signature.js';

/** How long a measurement of an owner is reused: about a block. An order that takes more gas than it paid for is not sent. */
const KEEP_MS = 2_000;
/** Most owners that are remembered. */
const MAX_OWNERS = 10_000;

/** What an owner's check takes, and whether it is done by code. */
export interface Check {
  gas: bigint;
  isCode: boolean;
}

/**
 * Gas of an owner's check; throws 400 for one that takes more than an order may. An owner's code runs at most once per KEEP_MS, however
 * many quotes are requested, which bounds the cost of expensive code.
 */
export function createCheckGas(deps: SwapDeps, joined: JoinedReads): (owner: Address) => Promise<Check> {
  const { eth, permit2, maxGas = DEFAULT_CHECK_GAS, nowMs } = deps;
  let kept = new Map<Address, { code: Hex; atMs: number; gas: Promise<bigint | null> }>();

  async function gasOf(owner: Address, code: Hex): Promise<bigint | null> {
    const known = kept.get(owner);
    if (known?.code === code && Math.abs(nowMs() - known.atMs) < KEEP_MS) return known.gas;
    if (kept.size >= MAX_OWNERS) kept = new Map();
    const gas = signatureGas(eth, { owner, code }, { maxGas, permit2 });
    kept.set(owner, { code, atMs: nowMs(), gas });
    // A failure is not cached.
    gas.catch(() => kept.delete(owner));
    return gas;
  }

  return async (owner) => {
    const code = await joined([{ method: 'eth_getCode', params: [owner, 'latest'] }], ([answer]) => bytesOf(answer));
    if (code === '0x') return { gas: 0n, isCode: false };
    const gas = await gasOf(owner, code);
    if (gas === null) throw badRequest(`from: checking a signature of ${owner} takes more than ${maxGas} gas`);
    return { gas, isCode: true };
  };
}
