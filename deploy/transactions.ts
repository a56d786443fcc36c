/** Sending transactions one after the other, as a deployment does. */
import { JsonRpcProvider } from 'ethers';
import type { ContractTransactionResponse, TransactionReceipt, TransactionResponse } from 'ethers';

/** A provider that caches no answers, sends each request at once instead of batching, and polls often for receipts. */
export function connect(rpcUrl: string): JsonRpcProvider {
  return new JsonRpcProvider(rpcUrl, undefined, {
    staticNetwork: true,
    cacheTimeout: -1,
    pollingInterval: 50,
    batchMaxCount: 1,
  });
}

/** Waits until `sent` is mined. Throws when it reverts. */
export async function mined(
  sent: Promise<TransactionResponse | ContractTransactionResponse>,
): Promise<TransactionReceipt> {
  const receipt = await (await sent).wait();
  if (receipt === null) throw new Error('the transaction has no receipt');
  return receipt;
}
