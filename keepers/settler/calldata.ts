import type { Hex } from '../../core/types.js';
import { keccakText } from '../../core/hash.js';
import type { Settlement } from '../../ledger/types.js';

const SETTLE_BATCH = keccakText('settleWithdrawBatch((address,address,uint256,uint256)[])').slice(0, 10);

const word = (value: bigint): string => value.toString(16).padStart(64, '0');

/** The call that settles a batch: an element that is stale or not covered by free liquidity is skipped, the others take effect. */
export function settleCalldata(
  settlements: readonly Pick<Settlement, 'maker' | 'token' | 'amountUnits' | 'basis'>[],
): Hex {
  const elements = settlements.map(
    ({ maker, token, amountUnits, basis }) =>
      word(BigInt(maker)) + word(BigInt(token)) + word(amountUnits) + word(basis),
  );
  return `${SETTLE_BATCH}${word(32n)}${word(BigInt(settlements.length))}${elements.join('')}` as Hex;
}

/** Gas of such a call, with room for first-time slots and for tokens behind proxies. */
export const settleGasLimit = (count: number): bigint => 120_000n + 110_000n * BigInt(count);
