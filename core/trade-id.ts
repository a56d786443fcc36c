import { toSafeInt } from './amounts.js';
import { keccakText } from './hash.js';
import type { Hex } from './types.js';

/**
 * The id that makers deduplicate fills by: the top 53 bits of a hash over deployment, market, transaction, fill and order, so that
 * a replay gives the same id and a fill re-mined in another transaction gives another.
 */
export function tradeId(
  deploymentId: string,
  marketId: Hex,
  fill: { txHash: Hex; fillSeq: number },
  oid: number,
): number {
  const hash = keccakText(`${deploymentId}:${marketId}:${fill.txHash}:${fill.fillSeq}:${oid}`);
  return toSafeInt(BigInt(hash) >> (256n - 53n));
}
