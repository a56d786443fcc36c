/** A node as an outbox sees it: one account, a pool of one transaction per nonce, blocks when the test says so. */
import { Transaction } from 'ethers';
import type { Hex } from '../../core/types.js';
import { RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../../keepers/chain/rpc.js';

export interface FakeNode {
  rpc: Rpc;
  /** Every broadcast that arrived, in order. */
  readonly received: Transaction[];
  /** What the pool holds, by nonce. */
  readonly pool: Map<number, Transaction>;
  /** Mined, in nonce order. */
  readonly mined: Transaction[];
  baseFeeWei: bigint;
  balanceWei: bigint;
  /** Broadcasts do not reach the node while true. */
  unreachable: boolean;
  /** Mines the pool from the first unused nonce on, as far as it has no gap and pays the base fee. */
  mine(): number;
  /** Drops the newest mined transactions and, unless they are kept, the pool. */
  reorg(count: number): void;
}

/** A fresh node whose account has not sent anything. */
export function createFakeNode(): FakeNode {
  const received: Transaction[] = [];
  const pool = new Map<number, Transaction>();
  const mined: Transaction[] = [];

  function accept(raw: Hex): Hex {
    const tx = Transaction.from(raw);
    received.push(tx);
    const refuse = (message: string) => new RpcResponseError('eth_sendRawTransaction', -32_000, message, undefined);
    if (tx.nonce < mined.length) throw refuse('nonce too low');
    const known = pool.get(tx.nonce);
    if (known?.hash === tx.hash) throw refuse('already known');
    if (known !== undefined) {
      const enough = (now: bigint | null, before: bigint | null) => (now ?? 0n) * 100n >= (before ?? 0n) * 110n;
      const outbids =
        enough(tx.maxFeePerGas, known.maxFeePerGas) && enough(tx.maxPriorityFeePerGas, known.maxPriorityFeePerGas);
      if (!outbids) throw refuse('replacement transaction underpriced');
    }
    pool.set(tx.nonce, tx);
    return tx.hash as Hex;
  }

  async function call(method: string, params: unknown[] = []): Promise<unknown> {
    switch (method) {
      case 'eth_getTransactionCount':
        return toQuantity(mined.length);
      case 'eth_getBlockByNumber':
        return { baseFeePerGas: toQuantity(node.baseFeeWei) };
      case 'eth_getBalance':
        return toQuantity(node.balanceWei);
      case 'eth_sendRawTransaction':
        if (node.unreachable) throw new RpcUnavailableError('unreachable');
        return accept(params[0] as Hex);
      default:
        throw new RpcResponseError(method, -32_601, 'no such method', undefined);
    }
  }

  const node: FakeNode = {
    rpc: {
      name: 'fake',
      call,
      batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))),
    },
    received,
    pool,
    mined,
    baseFeeWei: 1_000_000_000n,
    balanceWei: 10n ** 18n,
    unreachable: false,
    mine() {
      let count = 0;
      for (let tx = pool.get(mined.length); tx !== undefined; tx = pool.get(mined.length)) {
        if ((tx.maxFeePerGas ?? 0n) < node.baseFeeWei) break;
        pool.delete(tx.nonce);
        mined.push(tx);
        count += 1;
      }
      return count;
    },
    reorg(count) {
      mined.splice(mined.length - count, count);
      pool.clear();
    },
  };
  return node;
}
