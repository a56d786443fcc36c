import { MAX_DECIMALS, MAX_U128, toSafeInt, wordOf } from '../../../core/amounts.js';
import type { Said } from '../../../core/holdings.js';
import { decodeSymbol } from '../../../core/token-names.js';
import type { Address, Hex, Token } from '../../../core/types.js';
import type { SaidOfToken } from '../../../ledger/types.js';
import { RpcContradictionError, RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../../chain/rpc.js';
import type { KnownBlock } from '../scan/canonical.js';
import { parseHeader } from '../scan/headers.js';

const SYMBOL = '0x95d89b41';
const DECIMALS = '0x313ce567';
const BALANCE_OF = '0x70a08231';
const TRANSFER = '0xa9059cbb';
const WORD = /^0x[0-9a-f]{64}$/i;
/** JSON-RPC code of a revert, and what nodes say that have another, or when the call ran out of gas or met no instruction. */
const REVERTED = 3;
const EXECUTION_FAILED = /revert|out of gas|opcode|stack (under|over)flow|VM Exception/i;
/** Most gas of a question to a token, so that none can keep an endpoint busy until it gives up. */
const CALL_GAS = toQuantity(1_000_000n);
/** Returns what it is given, at every block whose state the endpoint has. */
const IDENTITY: Address = `0x${'4'.padStart(40, '0')}`;
const PROBE: Hex = '0x01';
/** Most places of `decimals()` that fit its type; what is beyond is no answer. */
const MAX_UINT8 = 255n;

/** A token that does not say its decimals, or names more than amounts can have, counts in its smallest units. */
export function tokenOf(address: Address, { symbol, decimals }: SaidOfToken): Token {
  return { address, symbol, decimals: decimals === null || decimals > MAX_DECIMALS ? 0 : decimals };
}

/** A token's metadata at a block. Throws StateMissingError when the endpoint can't answer. */
export async function readSaid(rpc: Rpc, address: Address, at: string = 'latest'): Promise<SaidOfToken> {
  const [symbol, decimals] = await Promise.all([ask(rpc, address, SYMBOL, at), ask(rpc, address, DECIMALS, at)]);
  const places = decimals !== null && WORD.test(decimals) ? BigInt(decimals) : null;
  return {
    symbol: symbol === null ? '' : decodeSymbol(symbol),
    decimals: places === null || places > MAX_UINT8 ? null : toSafeInt(places),
  };
}

/** The endpoint executes nothing at a block: it has no state of it, or is at fault otherwise. */
export class StateMissingError extends RpcUnavailableError {
  override readonly name = 'StateMissingError';
}

/**
 * The token's answer, null when it reverts. Nodes report reverts in many ways, so any failure counts as the token's if the endpoint can
 * execute another call at that block. Throws StateMissingError when it does not.
 */
async function ask(rpc: Rpc, to: Address, data: Hex, at: string, from?: Address): Promise<Hex | null> {
  try {
    return await callToken(rpc, { to, data, ...(from === undefined ? {} : { from }) }, at);
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    if (isExecutionFailure(error) || (await executes(rpc, at))) return null;
    throw new StateMissingError(`${rpc.name} executes nothing at ${at}: ${error.message}`, error);
  }
}

async function callToken(rpc: Rpc, call: { to: Address; data: Hex; from?: Address }, at: string): Promise<Hex> {
  const answer = await rpc.call('eth_call', [{ ...call, gas: CALL_GAS }, at]);
  if (typeof answer !== 'string') throw new RpcContradictionError(`${rpc.name} answers no call`);
  return answer as Hex;
}

async function executes(rpc: Rpc, at: string): Promise<boolean> {
  try {
    return (await callToken(rpc, { to: IDENTITY, data: PROBE }, at)) === PROBE;
  } catch (error) {
    if (error instanceof RpcResponseError) return false;
    throw error;
  }
}

const isExecutionFailure = (error: RpcResponseError): boolean =>
  error.code === REVERTED || EXECUTION_FAILED.test(error.message);

/** The endpoint does not have the block that is asked about, or another one at its height. */
export class OtherBlockError extends RpcUnavailableError {
  override readonly name = 'OtherBlockError';
}

/**
 * Balance of `holder` in each token at the end of a block. Those in `apart` are asked one by one, since one that reverts spoils a common request. Throws
 * OtherBlockError when the endpoint that answers has another block at that height: what it says of holdings is of another history, and must
 * neither halt the ledger nor be booked.
 */
export async function readBalancesAt(
  rpc: Rpc,
  holder: Address,
  tokens: readonly Address[],
  block: KnownBlock,
  apart: ReadonlySet<Address> = new Set(),
): Promise<Map<Address, Said>> {
  const together = tokens.filter((token) => !apart.has(token));
  const common = await askTogether(rpc, holder, together, block);
  const alone = common === null ? tokens : tokens.filter((token) => apart.has(token));
  const said = new Map<Address, Said>(common ?? []);
  if (alone.length === 0) return said;
  const at = toQuantity(block.number);
  const answers = await Promise.all(alone.map((token) => ask(rpc, token, balanceOf(holder), at)));
  alone.forEach((token, i) => said.set(token, answers[i] === null ? 'no_answer' : balanceFrom(answers[i]!)));
  requireSame(rpc, await rpc.call('eth_getBlockByNumber', [at, false]), block);
  return said;
}

/** Null when one of them reverts; which, only asking each by itself tells. */
async function askTogether(
  rpc: Rpc,
  holder: Address,
  tokens: readonly Address[],
  block: KnownBlock,
): Promise<[Address, Said][] | null> {
  if (tokens.length === 0) return [];
  const at = toQuantity(block.number);
  const data = balanceOf(holder);
  // Behind the balances, and in one request with them, so that it is the same endpoint's, and none the older.
  const requests = [
    ...tokens.map((token) => ({ method: 'eth_call', params: [{ to: token, data, gas: CALL_GAS }, at] })),
    { method: 'eth_getBlockByNumber', params: [at, false] },
  ];
  let answers: unknown[];
  try {
    answers = await rpc.batch(requests);
  } catch (error) {
    if (error instanceof RpcResponseError) return null;
    throw error;
  }
  requireSame(rpc, answers[tokens.length], block);
  return tokens.map((token, i) => [token, balanceFrom(answers[i])]);
}

function requireSame(rpc: Rpc, header: unknown, { number, hash }: KnownBlock): void {
  const found = parseHeader(header);
  if (found === null || found.number !== number) throw new OtherBlockError(`${rpc.name} lacks block ${number}`);
  if (found.hash !== hash)
    throw new OtherBlockError(`${rpc.name} has another block ${number} than the one that was scanned`);
}

const balanceOf = (holder: Address): Hex => `${BALANCE_OF}${wordOf(holder)}`;

/** No token has as much as 2^128 units of anything that is worth a market; no answer at all is that of an address without code. */
function balanceFrom(answer: unknown): Said {
  if (answer === '0x') return 'no_answer';
  if (typeof answer !== 'string' || !WORD.test(answer)) return 'bad_answer';
  const units = BigInt(answer);
  return units > MAX_U128 ? 'bad_answer' : units;
}

/**
 * Whether the token lets `holder` pay out at a block: it is executed as a transfer of one unit, and of all, to each of `recipients`, and one that works
 * is enough. A token that answers nothing has transferred; one that answers false has not.
 */
export async function canTransfer(
  rpc: Rpc,
  transfer: { token: Address; holder: Address; recipients: readonly Address[]; units: bigint },
  blockNumber: number,
): Promise<boolean> {
  const { token, holder, recipients, units } = transfer;
  const at = toQuantity(blockNumber);
  for (const amount of units > 1n ? [1n, units] : [units]) {
    for (const recipient of recipients) {
      const data: Hex = `${TRANSFER}${wordOf(recipient)}${wordOf(amount)}`;
      const answer = await ask(rpc, token, data, at, holder);
      if (answer === '0x' || (answer !== null && WORD.test(answer) && BigInt(answer) === 1n)) return true;
    }
  }
  return false;
}
