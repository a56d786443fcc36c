/** What an account has of a token, and what another may take of it. */
import { Interface, toQuantity } from 'ethers';
import type { Address } from '../core/types.js';
import { bytesOf, type EthReader } from './eth.js';

/** Most gas of a call to a token, which is foreign code. */
const CALL_GAS = 300_000n;
const ERC20 = new Interface([
  'function balanceOf(address) view returns (uint256)',
  'function allowance(address, address) view returns (uint256)',
]);

interface Look {
  token: Address;
  owner: Address;
  spender: Address;
}

/** In units of the token; null where it answers nothing. */
interface Funds {
  balanceUnits: bigint | null;
  allowanceUnits: bigint | null;
}

/** The two requests of a look, at the newest block: for a batch that reads other things, too. `fundsIn` reads their answers. */
export function fundsRequests({ token, owner, spender }: Look): { method: string; params: unknown[] }[] {
  const data = [
    ERC20.encodeFunctionData('balanceOf', [owner]),
    ERC20.encodeFunctionData('allowance', [owner, spender]),
  ];
  const gas = toQuantity(CALL_GAS);
  return data.map((one) => ({ method: 'eth_call', params: [{ to: token, data: one, gas }, 'latest'] }));
}

/** The answers to `fundsRequests`, in their order. Throws as `bytesOf` does. */
export function fundsIn([balance, allowance]: readonly unknown[]): Funds {
  const units = (answer: unknown): bigint | null => {
    const bytes = bytesOf(answer);
    return bytes === '0x' ? null : BigInt(bytes);
  };
  return { balanceUnits: units(balance), allowanceUnits: units(allowance) };
}

/** Both in one round trip to one endpoint. Throws what the endpoint answers, as for a token that reverts. */
export const readFunds = async (eth: EthReader, look: Look): Promise<Funds> =>
  fundsIn(await eth.batch(fundsRequests(look)));
