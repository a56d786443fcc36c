import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { onOne, type EthReader } from '../../liquidity/eth.js';
import { confirmed, surveyOf } from './quorum.js';
import type { Rpc } from './rpc.js';

/** What a receipt says of costs and success, as JSON-RPC writes it. */
export interface TxReceipt {
  transactionHash: Hex;
  status: Hex;
  blockNumber: Hex;
  gasUsed: Hex;
  effectiveGasPrice: Hex;
  l1Fee?: Hex | null;
}

/**
 * Receipts of transactions, in the order asked. Null for one that was not mined, that not all of two endpoints know yet, or of which endpoints
 * tell different things: what is durable must not rest on one that makes them up.
 */
export async function readReceipts(rpc: Rpc, hashes: readonly Hex[]): Promise<(TxReceipt | null)[]> {
  const requests = hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
  const ask = async (one: EthReader): Promise<(TxReceipt | null)[]> =>
    (await one.batch(requests)) as (TxReceipt | null)[];
  const first = await onOne(rpc, ask);
  // Nothing to confirm, as in most rounds.
  if (first.every((receipt) => receipt === null)) return first;
  const votes = await surveyOf(rpc, ask, first);
  return hashes.map((_, i) =>
    confirmed(
      votes.map(({ answer, ...vote }) => ({ ...vote, answer: answer[i] ?? null })),
      nameOf,
    ),
  );
}

/** Equal for receipts that say the same. */
const nameOf = (receipt: TxReceipt | null): string =>
  receipt === null
    ? ''
    : [
        ...[receipt.transactionHash.toLowerCase(), receipt.status, receipt.blockNumber],
        ...[receipt.gasUsed, receipt.effectiveGasPrice, receipt.l1Fee ?? ''],
      ].join();

/** Fee in wei as a receipt says it, the data fee of a rollup included. */
export function feeOf(receipt: { gasUsed: string; effectiveGasPrice: string; l1Fee?: string | null }): {
  gasUsed: number;
  feeWei: bigint;
} {
  const gasUsed = BigInt(receipt.gasUsed);
  return {
    gasUsed: toSafeInt(gasUsed),
    feeWei: gasUsed * BigInt(receipt.effectiveGasPrice) + BigInt(receipt.l1Fee ?? '0x0'),
  };
}
