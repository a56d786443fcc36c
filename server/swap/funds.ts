import { Interface } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swap-log.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';

const ERC20 = new Interface([
  'function balanceOf(address) view returns (uint256)',
  'function allowance(address, address) view returns (uint256)',
]);
const PERMIT2 = new Interface(['function nonceBitmap(address, uint256) view returns (uint256)']);

/** What the chain says of the owner of an order, at the newest block. */
export interface OwnerState {
  owner: Address;
  /** `0x` for an account without code. */
  code: Hex;
  balanceUnits: bigint;
  /** What Permit2 may take. */
  allowanceUnits: bigint;
  /** Whether Permit2 knows the order's nonce as used. */
  isNonceUsed: boolean;
}

/** Reads it in one round trip. */
export async function readOwner({ eth, permit2 }: SwapDeps, quote: SwapQuote): Promise<OwnerState> {
  const { owner, sellToken, nonce } = quote;
  const calls = [
    { to: sellToken, data: ERC20.encodeFunctionData('balanceOf', [owner]) },
    { to: sellToken, data: ERC20.encodeFunctionData('allowance', [owner, permit2]) },
    { to: permit2, data: PERMIT2.encodeFunctionData('nonceBitmap', [owner, nonce >> 8n]) },
  ];
  const [code = '0x', ...answers] = (await eth.batch([
    { method: 'eth_getCode', params: [owner, 'latest'] },
    ...calls.map((call) => ({ method: 'eth_call', params: [call, 'latest'] })),
  ])) as Hex[];
  const [balanceUnits = 0n, allowanceUnits = 0n, used = 0n] = answers.map((answer) => BigInt(answer));
  return { owner, code, balanceUnits, allowanceUnits, isNonceUsed: ((used >> (nonce & 255n)) & 1n) === 1n };
}

/** Throws 400, saying what is missing, unless the owner has and allows what the order takes and Permit2 still knows the nonce as unused. */
export function checkFunds({ permit2 }: SwapDeps, quote: SwapQuote, state: OwnerState): void {
  const { owner, sellToken, sellUnits, expectedSellUnits } = quote;
  const { balanceUnits, allowanceUnits } = state;
  if (balanceUnits < expectedSellUnits) {
    throw badRequest(
      `Insufficient balance: ${owner} holds ${balanceUnits} of ${sellToken}, the order takes ${expectedSellUnits}`,
    );
  }
  if (allowanceUnits < sellUnits) {
    throw badRequest(
      `Insufficient allowance: ${owner} allows Permit2 (${permit2}) to take ${allowanceUnits} of ${sellToken}, the order needs ` +
        `${sellUnits}; approve permit2.allowanceTarget`,
    );
  }
  if (state.isNonceUsed) throw badRequest("The order's Permit2 nonce is used up; get a fresh quote");
}
