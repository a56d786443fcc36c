import type { Address, Hex } from '../../core/types.js';
import { isFailedCall } from '../../liquidity/eth.js';
import { RpcResponseError, revertData, type Rpc } from '../chain/rpc.js';
import { refusalOf, type Refusal } from './refusals.js';
import { SETTLER } from './transaction.js';

/** What a transaction would do at the newest block. */
export type Simulated =
  { ok: true; data: Hex; inUnits: bigint; outUnits: bigint; gas: bigint } | { ok: false; refusal: Refusal };

/** Runs the exact transaction without sending it. Throws what does not tell how it would end. */
export async function simulate(rpc: Rpc, from: Address, to: Address, data: Hex): Promise<Simulated> {
  try {
    const call = { from, to, data };
    const [answer, gas] = (await rpc.batch([
      { method: 'eth_call', params: [call, 'latest'] },
      { method: 'eth_estimateGas', params: [call] },
    ])) as [Hex, Hex];
    // All functions of the settler that fill answer alike.
    const [inUnits, outUnits] = SETTLER.decodeFunctionResult('fillOnCurve', answer) as unknown as [bigint, bigint];
    return { ok: true, data, inUnits, outUnits, gas: BigInt(gas) };
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    const data = revertData(error.data);
    if (data === null && !isFailedCall(error)) throw error;
    return { ok: false, refusal: refusalOf(data ?? '0x') };
  }
}
