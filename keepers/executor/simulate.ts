import type { Address, Hex } from '../../core/types.js';
import { RpcResponseError, type Rpc } from '../chain/rpc.js';
import { refusalOf, type Refusal } from './refusals.js';
import { SETTLER } from './transaction.js';

/** What a transaction would do at the newest block. */
export type Simulated =
  { ok: true; data: Hex; inUnits: bigint; outUnits: bigint; gas: bigint } | { ok: false; refusal: Refusal };

/** Runs the exact transaction without sending it. Throws what is not an answer of the node. */
export async function simulate(rpc: Rpc, from: Address, to: Address, data: Hex): Promise<Simulated> {
  try {
    const call = { from, to, data };
    const [answer, gas] = (await rpc.batch([
      { method: 'eth_call', params: [call, 'latest'] },
      { method: 'eth_estimateGas', params: [call] },
    ])) as [Hex, Hex];
    // Both functions of the settler answer alike.
    const [inUnits, outUnits] = SETTLER.decodeFunctionResult('fill', answer) as unknown as [bigint, bigint];
    return { ok: true, data, inUnits, outUnits, gas: BigInt(gas) };
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    return { ok: false, refusal: refusalOf(revertData(error.data) ?? '0x') };
  }
}

/** Nodes put the data of a revert in `data` itself, or in an object there. */
function revertData(data: unknown): string | null {
  if (typeof data === 'string') return data;
  if (typeof data !== 'object' || data === null) return null;
  return revertData((data as { data?: unknown }).data);
}
