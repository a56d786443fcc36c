/** A wallet of one account with the node behind it (EIP-1193), which may mine another transaction than the one that it was asked for. */
import { BrowserProvider } from 'ethers';
import { createPublicClient, createWalletClient, custom } from 'viem';
import { base } from 'viem/chains';
import type { Hex } from '../../core/types.js';
import { fromEthers } from '../../sdk/src/ethers.js';
import { fromViem } from '../../sdk/src/viem.js';
import type { Signer } from '../../sdk/src/wallet.js';

/** What becomes of a transaction: it is mined as it is, another one with its nonce is, or nothing ever happens. */
export type Fate = 'mined' | 'reverted' | 'repriced' | 'repriced, reverted' | 'cancelled' | 'replaced' | 'never';

interface Sent {
  to: string;
  data: string;
  gas?: string;
  chainId?: string;
}

export const ACCOUNT: Hex = `0x${'99'.repeat(20)}`;

const hex = (value: number | bigint): Hex => `0x${value.toString(16)}`;
const word = (value: number): Hex => `0x${value.toString(16).padStart(64, '0')}`;
const GAS = { gas: hex(200_000), maxFeePerGas: hex(2), maxPriorityFeePerGas: hex(1), gasPrice: hex(2), type: '0x2' };
const SIGNED = { v: '0x0', yParity: '0x0', r: word(1), s: word(1), accessList: [] };

export function oneAccountChain({ fate = 'mined', chainId = 8453 }: { fate?: Fate; chainId?: number } = {}) {
  /** `down`: a method of the node that fails from then on. */
  const state = { chainId, onSent: (): unknown => undefined, down: '' };
  const sent: Sent[] = [];
  const signed: { domain: { chainId?: number | string }; primaryType: string }[] = [];
  const waiting = new Map<string, { call: Sent; nonce: number; isSeen: boolean }>();
  /** By number; what a transaction became stands in its block. */
  const blocks: { hash: string; call: Sent; nonce: number; isGood: boolean }[][] = [[]];
  let hashes = 0xaa00;
  const nextHash = (): Hex => word((hashes += 1));

  function mine(hash: string, call: Sent, nonce: number, isGood: boolean): void {
    blocks.push([{ hash, call, nonce, isGood }]);
  }

  function send(call: Sent): string {
    const nonce = sent.push(call) - 1;
    const hash = nextHash();
    if (fate === 'mined' || fate === 'reverted') mine(hash, call, nonce, fate === 'mined');
    else waiting.set(hash, { call, nonce, isSeen: false });
    return hash;
  }

  const found = (hash: string) =>
    blocks.flatMap((list, number) => list.filter((one) => one.hash === hash).map((one) => ({ ...one, number })))[0];

  const place = (number: number) => ({
    blockHash: word(number + 1),
    blockNumber: hex(number),
    transactionIndex: '0x0',
  });

  const transaction = (hash: string, call: Sent, nonce: number, number: number | null) => ({
    ...{ hash, from: ACCOUNT, nonce: hex(nonce), to: call.to, input: call.data, value: '0x0' },
    ...{ ...GAS, ...SIGNED, chainId: hex(state.chainId) },
    ...(number === null ? { blockHash: null, blockNumber: null, transactionIndex: null } : place(number)),
  });

  function transactionByHash(hash: string): object | null {
    const pending = waiting.get(hash);
    if (pending !== undefined) {
      pending.isSeen = true;
      return transaction(hash, pending.call, pending.nonce, null);
    }
    const mined = found(hash);
    return mined === undefined ? null : transaction(hash, mined.call, mined.nonce, mined.number);
  }

  function receiptOf(hash: string): object | null {
    const pending = waiting.get(hash);
    // Another one takes its place once the client knows it, as nobody can tell who replaced what it has never seen.
    if (pending?.isSeen === true && fate !== 'never') {
      waiting.delete(hash);
      const { call, nonce } = pending;
      const other: Record<Exclude<Fate, 'never'>, Sent> = {
        ...{ mined: call, reverted: call, repriced: call, 'repriced, reverted': call },
        ...{ cancelled: { to: ACCOUNT, data: '0x' }, replaced: { to: call.to, data: '0xbeef' } },
      };
      mine(nextHash(), other[fate], nonce, fate !== 'repriced, reverted');
    }
    const mined = found(hash);
    if (mined === undefined) return null;
    return {
      ...{ transactionHash: hash, from: ACCOUNT, to: mined.call.to, contractAddress: null, type: '0x2' },
      ...{ ...place(mined.number), status: mined.isGood ? '0x1' : '0x0', logs: [], logsBloom: `0x${'00'.repeat(256)}` },
      ...{ gasUsed: hex(100_000), cumulativeGasUsed: hex(100_000), effectiveGasPrice: hex(2) },
    };
  }

  function block(named: string, isFull: boolean): object | null {
    const number = named === 'latest' ? blocks.length - 1 : Number.parseInt(named, 16);
    const list = blocks[number];
    if (list === undefined) return null;
    const zero = word(0);
    return {
      ...{ number: hex(number), hash: word(number + 1), parentHash: word(number), timestamp: hex(1_800_000_000) },
      ...{ nonce: '0x0000000000000000', difficulty: '0x0', gasLimit: hex(30_000_000), gasUsed: '0x0', miner: ACCOUNT },
      ...{ extraData: '0x', baseFeePerGas: '0x1', stateRoot: zero, receiptsRoot: zero, size: '0x1' },
      transactions: list.map(({ hash, call, nonce }) => (isFull ? transaction(hash, call, nonce, number) : hash)),
    };
  }

  const answers: Record<string, (params: never[]) => unknown> = {
    eth_chainId: () => hex(state.chainId),
    net_version: () => `${state.chainId}`,
    eth_accounts: () => [ACCOUNT],
    eth_blockNumber: () => hex(blocks.length - 1),
    eth_getTransactionCount: () => hex(blocks.flat().length),
    eth_estimateGas: () => hex(108_279),
    eth_call: () => word(2 ** 40),
    eth_signTypedData_v4: ([, text]: string[]) => {
      signed.push(JSON.parse(text!) as (typeof signed)[number]);
      return `0x${'12'.repeat(64)}1b`;
    },
    eth_sendTransaction: ([call]: Sent[]) => {
      // As wallets do.
      if (call!.chainId !== undefined && call!.chainId !== hex(state.chainId))
        throw new Error('another chain is asked for');
      const hash = send(call!);
      state.onSent();
      return hash;
    },
    eth_getTransactionByHash: ([hash]: string[]) => transactionByHash(hash!),
    eth_getTransactionReceipt: ([hash]: string[]) => receiptOf(hash!),
    eth_getBlockByNumber: ([named, isFull]: unknown[]) => block(named as string, isFull === true),
  };
  return {
    /** What was asked of the wallet. */
    ...{ sent, signed, state },
    provider: {
      async request({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> {
        const answer = answers[method];
        if (method === state.down) throw Object.assign(new Error('the node is out of order'), { code: -32603 });
        if (answer === undefined) throw new Error(`${method} is not served`);
        return Promise.resolve(answer(params as never[]));
      },
    },
  };
}

const POLL_MS = 10;

/** The libraries themselves, over such a wallet. */
export const WALLETS: Readonly<Record<string, (chain: ReturnType<typeof oneAccountChain>) => Promise<Signer>>> = {
  async ethers({ provider }) {
    const options = { pollingInterval: POLL_MS, cacheTimeout: -1 };
    return (await fromEthers(await new BrowserProvider(provider, undefined, options).getSigner())).signer;
  },
  viem({ provider }) {
    const shared = { transport: custom(provider), pollingInterval: POLL_MS };
    const wallet = createWalletClient({ account: ACCOUNT, chain: base, ...shared });
    return Promise.resolve(fromViem(wallet, createPublicClient(shared)).signer);
  },
};
