import { Interface } from 'ethers';
import type { Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swap-log.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';

const ERC20 = new Interface([
  'function balanceOf(address) view returns (uint256)',
  'function allowance(address, address) view returns (uint256)',
]);
const PERMIT2 = new Interface(['function nonceBitmap(address, uint256) view returns (uint256)']);

/** Throws 400, saying what is missing, unless the owner has and allows what the order takes and Permit2 still knows the nonce as unused. */
export async function checkFunds({ eth, permit2 }: SwapDeps, quote: SwapQuote): Promise<void> {
  const { owner, sellToken, sellUnits, expectedSellUnits, nonce } = quote;
  const calls = [
    { to: sellToken, data: ERC20.encodeFunctionData('balanceOf', [owner]) },
    { to: sellToken, data: ERC20.encodeFunctionData('allowance', [owner, permit2]) },
    { to: permit2, data: PERMIT2.encodeFunctionData('nonceBitmap', [owner, nonce >> 8n]) },
  ];
  const answers = (await eth.batch(calls.map((call) => ({ method: 'eth_call', params: [call, 'latest'] })))) as Hex[];
  const [balance = 0n, allowance = 0n, used = 0n] = answers.map((answer) => BigInt(answer));
  if (balance < expectedSellUnits) {
    throw badRequest(
      `Insufficient balance: ${owner} holds ${balance} of ${sellToken}, the order takes ${expectedSellUnits}`,
    );
  }
  if (allowance < sellUnits) {
    throw badRequest(
      `Insufficient allowance: ${owner} allows Permit2 (${permit2}) to take ${allowance} of ${sellToken}, the order needs ` +
        `${sellUnits}; approve permit2.allowanceTarget`,
    );
  }
  if ((used >> (nonce & 255n)) & 1n) throw badRequest("The order's Permit2 nonce is used up; get a fresh quote");
}
