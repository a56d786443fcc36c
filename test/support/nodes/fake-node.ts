/** A node with all that an outbox uses of it: one account, a pool of one transaction per nonce, and blocks when the test mines them. */
import { Transaction } from 'ethers';
import { keccakText } from '../../../core/hash.js';
import type { Address, Hex } from '../../../core/types.js';
import type { ProvenBlock } from '../../../keepers/chain/account-proof.js';
import { headerHash } from '../../../keepers/chain/header-hash.js';
import { accountsOf } from '../api/accounts.js';
import { sealBlock } from './real-blocks.js';
import { RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';

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
  /** The newest block as a ledger would have proven it: its number is that of the account's mined transactions. */
  provenBlock(): Promise<ProvenBlock>;
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
      case 'eth_blockNumber':
        return '0x1';
      case 'eth_getTransactionCount':
        return toQuantity(mined.length);
      case 'eth_getBlockByNumber':
        if (params[0] === 'latest') return { baseFeePerGas: toQuantity(node.baseFeeWei) };
        return headerAt(Number(params[0]));
      case 'eth_getProof': {
        const account = params[0] as Address;
        return { accountProof: await (await stateAt(Number(params[2]))).proofOf(account) };
      }
      case 'eth_getBalance':
        return toQuantity(node.balanceWei);
      case 'eth_sendRawTransaction':
        if (node.unreachable) throw new RpcUnavailableError('unreachable');
        return accept(params[0] as Hex);
      default:
        throw new RpcResponseError(method, -32_601, 'no such method', undefined);
    }
  }

  const signer = (): Address => (mined[0]?.from?.toLowerCase() ?? `0x${'11'.repeat(20)}`) as Address;
  const stateAt = (number: number) =>
    accountsOf(
      new Map([...[1, 2, 3].map((i): [Address, number] => [`0x${`${i}${i}`.repeat(20)}`, i]), [signer(), number]]),
    );

  async function headerAt(number: number): Promise<Record<string, unknown>> {
    const { header } = sealBlock({ number, parentHash: keccakText('parent'), timestampSec: 0, transactions: [] });
    const fields = { ...header, stateRoot: (await stateAt(number)).stateRoot };
    return { ...fields, hash: headerHash(fields) };
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
    async provenBlock() {
      return { number: mined.length, hash: (await headerAt(mined.length))['hash'] as Hex };
    },
    reorg(count) {
      mined.splice(mined.length - count, count);
      pool.clear();
    },
  };
  return node;
}
