import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { onOne, type EthReader } from '../../liquidity/eth.js';
import type { TransactionCost } from '../../ledger/transactions/costs.js';
import { confirmed, surveyOf } from './quorum.js';
import type { Rpc } from './rpc.js';

/** Fields of a JSON-RPC receipt about costs and success. */
export interface TxReceipt {
  transactionHash: Hex;
  status: Hex;
  blockNumber: Hex;
  gasUsed: Hex;
  effectiveGasPrice: Hex;
  l1Fee?: Hex | null;
}

/**
 * Receipts of transactions, in the order asked. Null for a transaction that was not mined, whose receipt a second endpoint does not have
 * yet, or on which endpoints differ: stored costs must not depend on one endpoint that invents receipts. Where the endpoint in use has none at all, the
 * others are asked with `isLast` alone.
 */
export async function readReceipts(
  rpc: Rpc,
  hashes: readonly Hex[],
  { isLast = false }: { isLast?: boolean } = {},
): Promise<(TxReceipt | null)[]> {
  const requests = hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }));
  const ask = async (one: EthReader): Promise<(TxReceipt | null)[]> =>
    (await one.batch(requests)) as (TxReceipt | null)[];
  const first = await onOne(rpc, ask);
  // Nothing to confirm, as in most rounds.
  if (!isLast && first.every((receipt) => receipt === null)) return first;
  const votes = await surveyOf(rpc, ask, first);
  return hashes.map((_, i) =>
    confirmed(
      votes.map(({ answer, ...vote }) => ({ ...vote, answer: answer[i] ?? null })),
      nameOf,
    ),
  );
}

/** Equal for receipts that say the same, in either letter case. */
const nameOf = (receipt: TxReceipt | null): string =>
  receipt === null
    ? ''
    : [
        ...[receipt.transactionHash, receipt.status, receipt.blockNumber],
        ...[receipt.gasUsed, receipt.effectiveGasPrice, receipt.l1Fee ?? ''],
      ]
        .join()
        .toLowerCase();

/** Fee in wei from a receipt, including a rollup's data fee. */
function feeOf(receipt: { gasUsed: string; effectiveGasPrice: string; l1Fee?: string | null }): {
  gasUsed: number;
  feeWei: bigint;
} {
  const gasUsed = BigInt(receipt.gasUsed);
  return {
    gasUsed: toSafeInt(gasUsed),
    feeWei: gasUsed * BigInt(receipt.effectiveGasPrice) + BigInt(receipt.l1Fee ?? '0x0'),
  };
}

/** Cost and result of a transaction from its receipt. */
export const saidBy = (
  receipt: TxReceipt,
): Pick<TransactionCost, 'blockNumber' | 'gasUsed' | 'feeWei' | 'succeeded'> => ({
  blockNumber: toSafeInt(BigInt(receipt.blockNumber)),
  ...feeOf(receipt),
  succeeded: BigInt(receipt.status) === 1n,
});
