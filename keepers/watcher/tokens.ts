import { MAX_DECIMALS, toSafeInt } from '../../core/amounts.js';
import { createMarket } from '../../core/market.js';
import { decodeSymbol } from '../../core/token-names.js';
import type { Address, Hex, Market, Token } from '../../core/types.js';
import type { ChainEvent } from '../chain/logs.js';
import { RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../chain/rpc.js';
import type { KnownBlock } from './canonical.js';
import { parseHeader, requireHeader } from './headers.js';

const SYMBOL = '0x95d89b41';
const DECIMALS = '0x313ce567';
const BALANCE_OF = '0x70a08231';
const WORD = /^0x[0-9a-f]{64}$/i;
/** JSON-RPC code of a revert, and what nodes say that have another, or when the call ran out of gas or met no instruction. */
const REVERTED = 3;
const EXECUTION_FAILED = /revert|out of gas|opcode|stack (under|over)flow|VM Exception/i;

/** Completes a MarketListed event with what the tokens say of themselves; `nameMarkets` gives them the names that others see. */
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

/** A token that does not say its decimals, or names more than amounts can have, counts in its smallest units. */
async function readToken(rpc: Rpc, address: Address): Promise<Token> {
  const [symbol, decimals] = await Promise.all([ask(rpc, address, SYMBOL), ask(rpc, address, DECIMALS)]);
  const said = WORD.test(decimals) ? BigInt(decimals) : 0n;
  return { address, symbol: decodeSymbol(symbol), decimals: said > MAX_DECIMALS ? 0 : toSafeInt(said) };
}

/** What the token answers, `0x` when it reverts. Other errors are the endpoint's, and worth another try. */
async function ask(rpc: Rpc, to: Address, data: Hex): Promise<Hex> {
  try {
    return (await rpc.call('eth_call', [{ to, data }, 'latest'])) as Hex;
  } catch (error) {
    if (isExecutionFailure(error)) return '0x';
    throw error;
  }
}

const isExecutionFailure = (error: unknown): boolean =>
  error instanceof RpcResponseError && (error.code === REVERTED || EXECUTION_FAILED.test(error.message));

/**
 * Balance of `holder` in each token at the end of a block; null of a token that does not say. Throws RpcUnavailableError when the endpoint that
 * answers has another block at that height: what it says of holdings is of another history, and must neither halt the ledger nor be booked.
 */
export async function readBalancesAt(
  rpc: Rpc,
  holder: Address,
  tokens: readonly Address[],
  block: KnownBlock,
): Promise<(bigint | null)[]> {
  try {
    return await askBalances(rpc, holder, tokens, block);
  } catch (error) {
    if (!isExecutionFailure(error)) throw error;
    if (tokens.length === 1) return [null];
  }
  // One of them reverts; each by itself says which.
  const balances: (bigint | null)[] = [];
  for (const token of tokens) balances.push(...(await readBalancesAt(rpc, holder, [token], block)));
  return balances;
}

async function askBalances(
  rpc: Rpc,
  holder: Address,
  tokens: readonly Address[],
  block: KnownBlock,
): Promise<(bigint | null)[]> {
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
  return answers.reverse().map((answer) => (WORD.test(answer as Hex) ? BigInt(answer as Hex) : null));
}
