import { toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { parseRpcLog } from '../chain/logs.js';
import { RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../chain/rpc.js';

/** Transfer(address,address,uint256) */
const TRANSFER_TOPIC: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** Blocks asked for at a time. */
const SPAN = 2_000;
const WORD = /^0x[0-9a-f]{64}$/i;

/**
 * What transfers of a token put into a vault in blocks `from..to`, less what they took out, as the token's own events say. Throws
 * RpcUnavailableError when the endpoint does not tell.
 */
export async function netTransfers(
  rpc: Rpc,
  { token, vault, from, to }: { token: Address; vault: Address; from: number; to: number },
): Promise<bigint> {
  const party: Hex = `0x${vault.slice(2).padStart(64, '0')}`;
  let net = 0n;
  for (let first = from; first <= to; first += SPAN) {
    const range = { fromBlock: toQuantity(first), toBlock: toQuantity(Math.min(first + SPAN - 1, to)), address: token };
    const [into, outOf] = await Promise.all([
      readLogs(rpc, { ...range, topics: [TRANSFER_TOPIC, null, party] }),
      readLogs(rpc, { ...range, topics: [TRANSFER_TOPIC, party] }),
    ]);
    net += sumOf(into, { token, party, index: 2, first, to }) - sumOf(outOf, { token, party, index: 1, first, to });
  }
  return net;
}

async function readLogs(rpc: Rpc, filter: object): Promise<unknown[]> {
  try {
    const answer = await rpc.call('eth_getLogs', [filter]);
    if (Array.isArray(answer)) return answer as unknown[];
    throw new RpcUnavailableError(`${rpc.name} answers no logs`);
  } catch (error) {
    if (error instanceof RpcResponseError)
      throw new RpcUnavailableError(`${rpc.name} refused logs: ${error.message}`, error);
    throw error;
  }
}

/** Only what was asked for counts; a log of another shape says nothing of an amount. */
function sumOf(
  logs: readonly unknown[],
  { token, party, index, first, to }: { token: Address; party: Hex; index: number; first: number; to: number },
): bigint {
  let sum = 0n;
  for (const raw of logs) {
    const log = parseRpcLog(raw);
    const number = toSafeInt(BigInt(log.blockNumber));
    const isAsked = log.address === token && log.topics[0] === TRANSFER_TOPIC && log.topics[index] === party;
    if (isAsked && number >= first && number <= to && WORD.test(log.data)) sum += BigInt(log.data);
  }
  return sum;
}
