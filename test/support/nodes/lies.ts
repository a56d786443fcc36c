/** Endpoints whose answers differ from the chain behind them. */
import { headerHash } from '../../../keepers/chain/header-hash.js';
import { receiptsRoot } from '../../../keepers/chain/receipts-root.js';
import type { Hex } from '../../../core/types.js';
import { toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { filterOf, type RpcHeaderAnswer, type RpcLogAnswer, type RpcReceiptAnswer } from './real-blocks.js';

/** How far an endpoint goes to hide a log. */
export const DEPTHS = ['logs', 'receipts', 'header', 'hash'] as const;
type Depth = (typeof DEPTHS)[number];

/**
 * The endpoint without the logs that `hides` names: left out of eth_getLogs; of the receipts, too; of the header's root and filter, too;
 * with the hash that such a header has, in this block and in those that follow.
 */
export function hiding(name: string, behind: Rpc, depth: Depth, hides: (log: RpcLogAnswer) => boolean): Rpc {
  const level = DEPTHS.indexOf(depth);
  /** Changed headers by the true hash of their block. */
  const told = new Map<Hex, RpcHeaderAnswer>();
  const real = new Map<Hex, Hex>();

  function stripped(receipts: readonly RpcReceiptAnswer[], blockHash: Hex): RpcReceiptAnswer[] {
    let logIndex = 0;
    return receipts.map((receipt) => {
      const logs = receipt.logs
        .filter((log) => !hides(log))
        .map((log) => ({ ...log, blockHash, logIndex: toQuantity(logIndex++) }));
      const logsBloom = filterOf(logs.flatMap(({ address, topics }) => [address, ...topics]));
      return { ...receipt, blockHash, logs, logsBloom };
    });
  }

  async function header(answer: unknown): Promise<unknown> {
    const block = answer as RpcHeaderAnswer | null;
    if (block === null || level < 2) return block;
    const known = told.get(block.hash);
    if (known !== undefined) return known;
    const receipts = (await behind.call('eth_getBlockReceipts', [block.hash])) as RpcReceiptAnswer[];
    const left = stripped(receipts, block.hash);
    const logsBloom = filterOf(left.flatMap(({ logs }) => logs).flatMap(({ address, topics }) => [address, ...topics]));
    const changed = {
      ...block,
      receiptsRoot: receiptsRoot(left),
      logsBloom,
      parentHash: told.get(block.parentHash)?.hash ?? block.parentHash,
    };
    if (level === 3) changed.hash = headerHash(changed);
    told.set(block.hash, changed);
    real.set(changed.hash, block.hash);
    return changed;
  }

  async function call(method: string, params: unknown[] = []): Promise<unknown> {
    switch (method) {
      case 'eth_getLogs': {
        const logs = (await behind.call(method, params)) as RpcLogAnswer[];
        return logs
          .filter((log) => !hides(log))
          .map((log) => ({ ...log, blockHash: told.get(log.blockHash)?.hash ?? log.blockHash }));
      }
      case 'eth_getBlockReceipts': {
        const asked = params[0] as Hex;
        const receipts = (await behind.call(method, [real.get(asked) ?? asked])) as RpcReceiptAnswer[] | null;
        return receipts === null || level < 1 ? receipts : stripped(receipts, asked);
      }
      case 'eth_getBlockByNumber':
        return header(await behind.call(method, params));
      default:
        return behind.call(method, params);
    }
  }
  return { name, call, batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))) };
}

/** The endpoint with all hex of its answers in upper case, as far as JSON-RPC leaves that open: what it says is true. */
export function inUpperCase(name: string, behind: Rpc): Rpc {
  const raised = (answer: unknown): unknown => {
    if (typeof answer === 'string') return answer.replace(/^0x[0-9a-f]+$/, (hex) => `0x${hex.slice(2).toUpperCase()}`);
    if (Array.isArray(answer)) return answer.map(raised);
    if (typeof answer !== 'object' || answer === null) return answer;
    return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, raised(value)]));
  };
  return {
    name,
    call: async (method, params) => raised(await behind.call(method, params)),
    batch: async (requests) => (await behind.batch(requests)).map(raised),
  };
}

/** The endpoint with the blocks, receipts and logs that it has now, whatever the chain becomes; all else is asked of the chain. */
export async function stuck(name: string, behind: Rpc): Promise<Rpc> {
  const head = Number(await behind.call('eth_blockNumber'));
  const headers: RpcHeaderAnswer[] = [];
  const receipts = new Map<Hex, RpcReceiptAnswer[]>();
  for (let number = 0; number <= head; number += 1) {
    const header = (await behind.call('eth_getBlockByNumber', [toQuantity(number), false])) as RpcHeaderAnswer;
    headers.push(header);
    receipts.set(header.hash, (await behind.call('eth_getBlockReceipts', [header.hash])) as RpcReceiptAnswer[]);
  }
  async function call(method: string, params: unknown[] = []): Promise<unknown> {
    switch (method) {
      case 'eth_blockNumber':
        return toQuantity(head);
      case 'eth_getBlockByNumber':
        return headers[params[0] === 'latest' ? head : Number(params[0])] ?? null;
      case 'eth_getBlockReceipts':
        return receipts.get(params[0] as Hex) ?? null;
      case 'eth_getLogs': {
        const { fromBlock, toBlock, address } = params[0] as { fromBlock: Hex; toBlock: Hex; address: string[] };
        const wanted = new Set(address.map((one) => one.toLowerCase()));
        return headers
          .slice(Number(fromBlock), Number(toBlock) + 1)
          .flatMap(({ hash }) => receipts.get(hash)!)
          .flatMap(({ logs }) => logs)
          .filter((log) => wanted.has(log.address.toLowerCase()));
      }
      default:
        return behind.call(method, params);
    }
  }
  return { name, call, batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))) };
}
