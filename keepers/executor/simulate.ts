import { toQuantity } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import { isFailedCall } from '../../liquidity/eth.js';
import { confirmed, surveyOf, type Endpoints } from '../chain/quorum.js';
import { RpcContradictionError, RpcResponseError, revertData, type Rpc } from '../chain/rpc.js';
import { refusalOf, type Refusal } from './refusals.js';
import { SETTLER } from './transaction.js';

/** Twice the default gas limit of an order, so that an order that takes too much gas can be told from one that fails. */
const DEFAULT_MAX_GAS = 2_000_000n;

/** What a transaction would do at the newest block. */
export type Simulated =
  { ok: true; data: Hex; inUnits: bigint; outUnits: bigint; gas: bigint } | { ok: false; refusal: Refusal };

/**
 * Runs the exact transaction by `eth_call`, with at most `maxGas`: an owner's code may take any amount. Errors that do not show the result
 * are thrown. A refusal that ends an order needs a majority of the endpoints that answer; throws RpcContradictionError without one.
 */
export async function simulate(
  rpc: Endpoints,
  from: Address,
  to: Address,
  data: Hex,
  maxGas = DEFAULT_MAX_GAS,
): Promise<Simulated> {
  const run = (one: Rpc): Promise<Simulated> => simulateOn(one, from, to, data, maxGas);
  const first = await (rpc.attempt?.(run) ?? run(rpc));
  if (first.ok || !(first.refusal.isFinal || first.refusal.code === 'NONCE_USED')) return first;
  const votes = await surveyOf(rpc, run, first);
  const said = confirmed(votes, (answer) => (answer.ok ? '' : answer.refusal.code));
  if (said === null)
    throw new RpcContradictionError(`endpoints differ on whether ${first.refusal.code} refuses an order`);
  return said;
}

/**
 * Whether a transaction was refused for its order's used nonce in a block that the ledger has: then the use, if it was a fill, is in the ledger.
 * False unless a majority of the endpoints that answer says so, each of them about this very block.
 */
export async function isNonceUsedIn(
  rpc: Endpoints,
  call: { from: Address; to: Address; data: Hex; maxGas: bigint },
  block: { number: number; hash: Hex },
): Promise<boolean> {
  const { from, to, data, maxGas } = call;
  const at = toQuantity(block.number);
  const votes = await surveyOf(rpc, async (one) => {
    const refusal = await callRefusal(one, { from, to, data, gas: toQuantity(maxGas) }, at);
    const header = (await one.call('eth_getBlockByNumber', [at, false])) as { hash?: unknown } | null;
    return refusal?.code === 'NONCE_USED' && String(header?.hash).toLowerCase() === block.hash;
  });
  return confirmed(votes, String) === true;
}

async function callRefusal(rpc: Rpc, call: object, at: string): Promise<Refusal | null> {
  try {
    await rpc.call('eth_call', [call, at]);
    return null;
  } catch (error) {
    return failureOf(error);
  }
}

/** Why the contract refuses a call that failed. Throws what does not show it. */
function failureOf(error: unknown): Refusal {
  if (!(error instanceof RpcResponseError)) throw error;
  const data = revertData(error.data);
  if (data === null && !isFailedCall(error)) throw error;
  return refusalOf(data ?? '0x');
}

async function simulateOn(rpc: Rpc, from: Address, to: Address, data: Hex, maxGas: bigint): Promise<Simulated> {
  try {
    const call = { from, to, data, gas: toQuantity(maxGas) };
    const [answer, gas] = (await rpc.batch([
      { method: 'eth_call', params: [call, 'latest'] },
      { method: 'eth_estimateGas', params: [call] },
    ])) as [Hex, Hex];
    // All functions of the settler that fill answer alike.
    const [inUnits, outUnits] = SETTLER.decodeFunctionResult('fillOnCurve', answer) as unknown as [bigint, bigint];
    return { ok: true, data, inUnits, outUnits, gas: BigInt(gas) };
  } catch (error) {
    return { ok: false, refusal: failureOf(error) };
  }
}
