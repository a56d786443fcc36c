import { Interface } from 'ethers';
import type { Address, Hex } from '../../core/types.js';
import type { SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import type { PendingSale } from '../../ledger/swaps/swap-wallets.js';
import { bytesOf, onOne } from '../../liquidity/eth.js';
import { fundsIn, fundsRequests } from '../../liquidity/funds.js';
import { badRequest } from '../errors.js';
import type { SwapDeps } from './deps.js';

const PERMIT2 = new Interface(['function nonceBitmap(address, uint256) view returns (uint256)']);

/** State of an order's owner on the chain, at the newest block. */
export interface OwnerState {
  owner: Address;
  /** `0x` for an account without code. */
  code: Hex;
  balanceUnits: bigint;
  /** Permit2's allowance. */
  allowanceUnits: bigint;
  /** Whether a nonce is used at Permit2; false for words that were not read. */
  isNonceUsed(nonce: bigint): boolean;
}

/** Most pending orders of one owner that sell the same token: more than can be executed one after the other before they expire. */
const MAX_PENDING_SALES = 100;
/** Of these, limit orders: each takes turns from those of others for weeks. */
const MAX_PENDING_LIMITS = 10;
/** Nonces of pending orders follow one another, so that a few words of Permit2 hold them; those of further words count as unused. */
const MAX_WORDS = 8;

/** Reads it in one round trip. `others` are the owner's pending orders, whose nonces are read, too. */
export async function readOwner(
  { eth, permit2 }: SwapDeps,
  { owner, sellToken, nonce }: SwapQuote,
  others: readonly PendingSale[],
): Promise<OwnerState> {
  const words = [...new Set([nonce, ...others.map((other) => other.nonce)].map((one) => one >> 8n))].slice(
    0,
    MAX_WORDS,
  );
  const calls = words.map((word) => ({ to: permit2, data: PERMIT2.encodeFunctionData('nonceBitmap', [owner, word]) }));
  const requests = [
    { method: 'eth_getCode', params: [owner, 'latest'] },
    ...fundsRequests({ token: sellToken, owner, spender: permit2 }),
    ...calls.map((call) => ({ method: 'eth_call', params: [call, 'latest'] })),
  ];
  const { code, balanceUnits, allowanceUnits, used } = await onOne(eth, async (one) => {
    const [first, balance, allowance, ...answers] = await one.batch(requests);
    const bitmaps = answers.map((answer) => BigInt(bytesOf(answer)));
    const { balanceUnits, allowanceUnits } = fundsIn([balance, allowance]);
    if (balanceUnits === null || allowanceUnits === null) throw new TypeError('a listed token says nothing');
    return { code: bytesOf(first), balanceUnits, allowanceUnits, used: bitmaps };
  });
  const usedIn = new Map(words.map((word, i) => [word, used[i] ?? 0n]));
  return {
    owner,
    code,
    balanceUnits,
    allowanceUnits,
    isNonceUsed: (one) => (((usedIn.get(one >> 8n) ?? 0n) >> (one & 255n)) & 1n) === 1n,
  };
}

/**
 * Throws 400, naming what is missing, unless balance and allowance cover what the order and all `others` take together (pending orders of
 * the owner that sell the same token and may still be executed), and the nonce is unused at Permit2. With `isAllowanceOpen` the allowance
 * is not checked, because that happens later.
 */
export function checkFunds(
  { permit2 }: SwapDeps,
  quote: SwapQuote,
  state: OwnerState,
  others: readonly PendingSale[],
  isAllowanceOpen = false,
): void {
  const { owner, sellToken, sellUnits, expectedSellUnits } = quote;
  const { balanceUnits, allowanceUnits } = state;
  if (state.isNonceUsed(quote.nonce)) throw badRequest("The order's Permit2 nonce is used up; get a fresh quote");
  const pending = others.filter(({ nonce }) => !state.isNonceUsed(nonce));
  if (pending.length >= MAX_PENDING_SALES) {
    throw badRequest(
      `Too many pending orders: ${owner} has ${pending.length} that sell ${sellToken}; wait until some end`,
    );
  }
  if (quote.isLimit && pending.filter(({ isLimit }) => isLimit).length >= MAX_PENDING_LIMITS) {
    throw badRequest(
      `Too many limit orders: ${owner} has ${MAX_PENDING_LIMITS} pending ones that sell ${sellToken}; cancel one, or wait until one ends`,
    );
  }
  const takes = (units: bigint, promised: bigint): string =>
    `the order takes ${units}` +
    (pending.length === 0 ? '' : `, and ${pending.length} pending orders take ${promised}`);
  const expected = pending.reduce((sum, other) => sum + other.expectedSellUnits, 0n);
  if (balanceUnits < expectedSellUnits + expected) {
    throw badRequest(
      `Insufficient balance: ${owner} holds ${balanceUnits} of ${sellToken}, ${takes(expectedSellUnits, expected)}`,
    );
  }
  if (isAllowanceOpen) return;
  const most = pending.reduce((sum, other) => sum + other.sellUnits, 0n);
  if (allowanceUnits < sellUnits + most) {
    throw badRequest(
      `Insufficient allowance: ${owner} allows Permit2 (${permit2}) to take ${allowanceUnits} of ${sellToken}, ` +
        `${takes(sellUnits, most)} at most; approve permit2.allowanceTarget, or sign approval.typedData where the quote has it`,
    );
  }
}
