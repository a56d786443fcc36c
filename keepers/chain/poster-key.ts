import type { Address, Hex } from '../../core/types.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import { confirmed, surveyOf } from './quorum.js';
import { RpcContradictionError, type Rpc } from './rpc.js';

/** The curve book and the custodian ask alike. */
const CONTRACT = Custodian__factory.createInterface();

/**
 * Whether a contract takes posts, or settlements, of a key at the newest block. A no is believed of more than half of the endpoints that
 * answer, for one that lags may not know yet that the key was added. Throws RpcContradictionError when there is no such majority.
 */
export async function mayPost(rpc: Rpc, contract: Address, key: Address): Promise<boolean> {
  const ask = async (one: Rpc): Promise<boolean> => {
    const call = { to: contract, data: CONTRACT.encodeFunctionData('isPoster', [key]) };
    return BigInt((await one.call('eth_call', [call, 'latest'])) as Hex) === 1n;
  };
  const first = await ask(rpc);
  if (first) return true;
  const said = confirmed(await surveyOf(rpc, ask, first), String);
  if (said === null) throw new RpcContradictionError(`endpoints differ on whether ${contract} takes posts of ${key}`);
  return said;
}
