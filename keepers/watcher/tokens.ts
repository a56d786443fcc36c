import { toSafeInt } from '../../core/amounts.js';
import { hexToBytes } from '../../core/hash.js';
import { createMarket } from '../../core/market.js';
import type { Address, Hex, Market, Token } from '../../core/types.js';
import type { ChainEvent } from '../chain/logs.js';
import { RpcUnavailableError, toQuantity, type Rpc } from '../chain/rpc.js';
import type { KnownBlock } from './canonical.js';
import { parseHeader, requireHeader } from './headers.js';

const SYMBOL = '0x95d89b41';
const DECIMALS = '0x313ce567';
const BALANCE_OF = '0x70a08231';

/** Completes a MarketListed event with what the tokens say of themselves. */
export async function readMarket(rpc: Rpc, event: Extract<ChainEvent, { type: 'listed' }>): Promise<Market> {
  const [base, quote] = await Promise.all([readToken(rpc, event.base), readToken(rpc, event.quote)]);
  return createMarket({
    index: event.index,
    base,
    quote,
    lotUnits: event.lotUnits,
    tickLotUnits: event.tickLotUnits,
    maxTtlSec: event.maxTtlSec,
  });
}

async function readToken(rpc: Rpc, address: Address): Promise<Token> {
  const [symbol, decimals] = (await rpc.batch([
    { method: 'eth_call', params: [{ to: address, data: SYMBOL }, 'latest'] },
    { method: 'eth_call', params: [{ to: address, data: DECIMALS }, 'latest'] },
  ])) as [Hex, Hex];
  return { address, symbol: decodeSymbol(symbol), decimals: toSafeInt(BigInt(decimals)) };
}

/** An ABI string, or the bytes32 that a few old tokens answer. */
function decodeSymbol(data: Hex): string {
  const bytes = hexToBytes(data);
  const text = (part: Uint8Array) => new TextDecoder().decode(part).replaceAll('\0', '');
  if (bytes.length === 32) return text(bytes);
  const length = toSafeInt(BigInt(`0x${data.slice(2 + 64, 2 + 128)}`));
  return text(bytes.subarray(64, 64 + length));
}

/**
 * Balance of `holder` in each token at the end of a block. Throws RpcUnavailableError when the endpoint that answers has another block at
 * that height: what it says of holdings is of another history, and must neither halt the ledger nor be booked.
 */
export async function readBalancesAt(
  rpc: Rpc,
  holder: Address,
  tokens: readonly Address[],
  block: KnownBlock,
): Promise<bigint[]> {
  const at = toQuantity(block.number);
  const data = `${BALANCE_OF}${holder.slice(2).padStart(64, '0')}`;
  // Behind the balances, and in one request with them, so that it is the same endpoint's, and none the older.
  const [header, ...answers] = (
    await rpc.batch([
      ...tokens.map((token) => ({ method: 'eth_call', params: [{ to: token, data }, at] })),
      { method: 'eth_getBlockByNumber', params: [at, false] },
    ])
  ).reverse();
  if (requireHeader(rpc, parseHeader(header), block.number).hash !== block.hash)
    throw new RpcUnavailableError(`${rpc.name} has another block ${block.number} than the one that was scanned`);
  return answers.reverse().map((answer) => BigInt(answer as Hex));
}
