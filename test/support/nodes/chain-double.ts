/**
 * A chain in memory with a small model of the tokens, Custodian, CurveBook and Entrypoint: the same calls, events, refusals and state as
 * theirs as far as makers, takers, poster and settler use them, behind the JSON-RPC methods that keepers call. It mines on command,
 * takes blocks back to a snapshot, and then grows otherwise.
 */
import { Interface, MaxUint256 } from 'ethers';
import { keccakText } from '../../../core/hash.js';
import type { Address, Hex } from '../../../core/types.js';
import { RpcResponseError, toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import {
  cloneState,
  execute,
  newState,
  outcomeOf,
  parsed,
  viewAnswer,
  type DoubleLog,
  type DoubleState,
  type DoubleWorld,
} from './chain-double-contracts.js';
import {
  sealBlock,
  type RpcLogAnswer,
  type RpcReceiptAnswer,
  type SealedBlock,
  type SealedTransaction,
} from './real-blocks.js';
import { readSigned, type SignedCall } from '../api/signed-call.js';

type Pending = SignedCall;

interface Block {
  number: number;
  hash: Hex;
  timestampSec: number;
  /** What nodes answer of it: header, receipts and their logs. */
  sealed: SealedBlock;
  state: DoubleState;
  /** Results of calls at the block's end, kept since they never change. */
  calls: Map<string, Hex | RpcResponseError>;
}

interface ContractCall {
  from?: Address;
  to: Address;
  data: Hex;
}

interface LogFilter {
  fromBlock: string;
  toBlock: string;
  address: string | readonly string[];
  topics?: (string | null)[];
}

/** The precompile that returns what it is given. */
const IDENTITY = `0x${'4'.padStart(40, '0')}`;
const BASE_FEE_WEI = 1_000_000_000n;
const GAS_USED = 100_000n;

/** A fresh chain. `genesis` are events of its first block, in which everything is deployed and listed. */
export function createChainDouble(world: DoubleWorld, genesis: readonly DoubleLog[]): Rpc {
  const blocks: Block[] = [];
  /** Every transaction that a block held, by its hash. */
  const mined = new Map<Hex, Pending>();
  const saved = new Map<string, { height: number; pending: Pending[] }>();
  let pending: Pending[] = [];
  let forks = 0;
  let offsetSec = 0;
  let sent = 0;

  const head = (): Block => blocks[blocks.length - 1]!;
  const blockAt = (tag: string | undefined): Block | undefined =>
    tag === 'latest' || tag === undefined ? head() : blocks[Number.parseInt(tag, 16)];

  function append(transactions: Pending[], first: readonly DoubleLog[] = []): void {
    const number = blocks.length;
    const parentHash = blocks.at(-1)?.hash ?? keccakText('before');
    const timestampSec = (blocks.at(-1)?.timestampSec ?? Math.floor(Date.now() / 1_000)) + 2 + offsetSec;
    offsetSec = 0;
    let state = blocks.length === 0 ? newState(world) : cloneState(head().state);
    const at = { timestampSec, hashOf: (height: number) => (number - height > 256 ? undefined : blocks[height]?.hash) };
    const done: SealedTransaction[] = [];
    if (first.length > 0) done.push({ hash: keccakText('genesis'), logs: first });
    for (const tx of transactions) {
      const tried = cloneState(state);
      const logs = execute(world, tried, at, tx);
      if (logs !== null) state = tried;
      state.nonces.set(tx.from, tx.nonce + 1);
      mined.set(tx.hash, tx);
      done.push({ hash: tx.hash, logs: logs ?? [], succeeded: logs !== null });
    }
    if (world.strangers !== undefined && number > 1) done.push(strangers(number, world.strangers));
    const sealed = sealBlock({
      number,
      parentHash,
      timestampSec,
      transactions: done,
      baseFeeWei: BASE_FEE_WEI,
      gasUsed: GAS_USED,
      salt: forks,
    });
    blocks.push({ number, hash: sealed.header.hash, timestampSec, sealed, state, calls: new Map() });
  }

  /** Everything that can be mined: per sender from its nonce on, without gaps. */
  function mine(): void {
    const next = new Map(head().state.nonces);
    const taken: Pending[] = [];
    for (let found = true; found;) {
      found = false;
      for (const tx of pending) {
        if (taken.includes(tx) || tx.nonce !== (next.get(tx.from) ?? 0)) continue;
        taken.push(tx);
        next.set(tx.from, tx.nonce + 1);
        found = true;
      }
    }
    pending = pending.filter((tx) => !taken.includes(tx) && tx.nonce >= (next.get(tx.from) ?? 0));
    append(taken);
  }

  function accept(tx: Pending, method: string): Hex {
    const refuse = (message: string) => new RpcResponseError(method, -32_000, message, undefined);
    if (tx.nonce < (head().state.nonces.get(tx.from) ?? 0)) throw refuse('nonce too low');
    const known = pending.find((one) => one.from === tx.from && one.nonce === tx.nonce);
    if (known?.hash === tx.hash) throw refuse('already known');
    if (known !== undefined && tx.maxFeeWei * 100n < known.maxFeeWei * 110n)
      throw refuse('replacement transaction underpriced');
    pending = [...pending.filter((one) => one !== known), tx];
    return tx.hash;
  }

  function logsIn(filter: LogFilter): RpcLogAnswer[] {
    const [from, to] = [Number.parseInt(filter.fromBlock, 16), Number.parseInt(filter.toBlock, 16)];
    const wanted = new Set([filter.address].flat().map((address) => address.toLowerCase()));
    const { topics = [] } = filter;
    return blocks
      .slice(from, to + 1)
      .flatMap(({ sealed }) => sealed.receipts.flatMap(({ logs }) => logs))
      .filter((log) => wanted.has(log.address))
      .filter((log) => topics.every((topic, i) => topic === null || log.topics[i] === topic));
  }

  function receiptOf(txHash: unknown): RpcReceiptAnswer | null {
    for (const { sealed } of blocks) {
      const found = sealed.receipts.find(({ transactionHash }) => transactionHash === txHash);
      if (found !== undefined) return found;
    }
    return null;
  }

  function callContract(call: ContractCall, block: Block): Hex {
    const key = `${call.from ?? ''} ${call.to} ${call.data}`;
    let answer = block.calls.get(key);
    if (answer === undefined) {
      try {
        answer = carryOut(call, block);
      } catch (error) {
        if (!(error instanceof RpcResponseError)) throw error;
        answer = error;
      }
      block.calls.set(key, answer);
    }
    if (typeof answer !== 'string') throw answer;
    return answer;
  }

  function carryOut({ from, to, data }: ContractCall, block: Block): Hex {
    if (to === IDENTITY) return data;
    if (world.orders?.permit2 === to) return world.orders.permit2Answer(block.state, data) ?? '0x';
    const token = world.tokens.find(({ address }) => address === to);
    const answer =
      token === undefined ? viewAnswer(world, block.state, to, data) : tokenAnswer(token, block.state, data, from);
    if (answer !== undefined) return answer;
    if (from === undefined) throw new RpcResponseError('eth_call', -32_000, `no such view: ${to} ${data}`, undefined);
    // A call runs within its block, so `blockhash` of that block is zero.
    const { number, timestampSec } = block;
    const hashOf = (height: number) => (number - height > 256 || height >= number ? undefined : blocks[height]?.hash);
    const outcome = outcomeOf(world, block.state, { timestampSec, hashOf }, { from, to, data });
    if ('result' in outcome) return outcome.result;
    throw new RpcResponseError('eth_call', 3, 'execution reverted', outcome.refusal);
  }

  function perform(method: string, params: unknown[]): unknown {
    switch (method) {
      case 'eth_chainId':
        return toQuantity(world.chainId);
      case 'eth_blockNumber':
        return toQuantity(head().number);
      case 'eth_getBlockByNumber':
        return blockAt(params[0] as string)?.sealed.header ?? null;
      case 'eth_getLogs':
        return logsIn(params[0] as Parameters<typeof logsIn>[0]);
      case 'eth_getBlockReceipts':
        return blocks.find(({ hash }) => hash === params[0])?.sealed.receipts ?? null;
      case 'eth_getTransactionReceipt':
        return receiptOf(params[0]);
      case 'eth_getTransactionByHash': {
        const tx = mined.get(params[0] as Hex);
        return tx === undefined ? null : { from: tx.from, to: tx.to, input: tx.data };
      }
      case 'eth_call':
        return callContract(params[0] as ContractCall, blockAt(params[1] as string | undefined)!);
      case 'eth_estimateGas':
        callContract(params[0] as ContractCall, head());
        return toQuantity(GAS_USED);
      case 'eth_getCode':
        return '0x';
      case 'eth_getBalance':
        return toQuantity(10n ** 20n);
      case 'eth_getTransactionCount':
        return toQuantity(blockAt(params[1] as string | undefined)!.state.nonces.get(params[0] as Address) ?? 0);
      case 'eth_sendTransaction': {
        const { from, to, data } = params[0] as { from: Address; to: Address; data: Hex };
        const waiting = pending.filter((tx) => tx.from === from).length;
        const nonce = (head().state.nonces.get(from) ?? 0) + waiting;
        return accept(
          { hash: keccakText(`tx ${sent++}`), from, nonce, to, data, maxFeeWei: 2n * BASE_FEE_WEI },
          method,
        );
      }
      case 'eth_sendRawTransaction': {
        return accept(readSigned(params[0] as Hex), method);
      }
      case 'evm_mine':
        return mine();
      case 'evm_increaseTime':
        offsetSec += Number(params[0]);
        return null;
      case 'evm_snapshot': {
        const id = toQuantity(saved.size + 1);
        saved.set(id, { height: blocks.length, pending: [...pending] });
        return id;
      }
      case 'evm_revert': {
        const to = saved.get(String(params[0]))!;
        blocks.length = to.height;
        pending = [...to.pending];
        forks += 1;
        return true;
      }
      default:
        throw new RpcResponseError(method, -32_601, `no such method: ${method}`, undefined);
    }
  }

  append([]);
  append([], genesis);
  return {
    name: 'double',
    call: async (method, params = []) => perform(method, params),
    batch: async (requests) => requests.map(({ method, params }) => perform(method, params)),
  };
}

const ERC20 = new Interface([
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address,uint256) returns (bool)',
  'function allowance(address,address) view returns (uint256)',
]);

function tokenAnswer(
  token: DoubleWorld['tokens'][number],
  state: DoubleState,
  data: string,
  from: string | undefined,
): Hex | undefined {
  const call = parsed(ERC20, data);
  if (call === null) return undefined;
  const balance = (holder: string): bigint => state.balances.get(`${token.address}:${holder.toLowerCase()}`) ?? 0n;
  const results = {
    symbol: () => token.symbol,
    decimals: () => token.decimals,
    balanceOf: () => balance((call.args as unknown as [string])[0]),
    transfer: () => balance(from ?? '') >= (call.args as unknown as [string, bigint])[1],
    allowance: () => MaxUint256,
  };
  return ERC20.encodeFunctionResult(call.name, [results[call.name as keyof typeof results]()]) as Hex;
}

/** A transaction of other accounts that logs this many values. */
function strangers(number: number, count: number): SealedTransaction {
  const logs = Array.from({ length: count }, (_, i) => ({
    address: keccakText(`stranger ${i % 50}`).slice(0, 42) as Address,
    topics: [keccakText(`${number} ${i}`)],
    data: '0x' as const,
  }));
  return { hash: keccakText(`strangers ${number}`), logs };
}
