/** Blocks whose headers hash to their hash and whose receipts hash to the root in it, as nodes answer them. */
import { headerHash } from '../../../keepers/chain/header-hash.js';
import { bloomBits } from '../../../keepers/chain/bloom.js';
import { indexedRoot, receiptsRoot, type RpcReceipt } from '../../../keepers/chain/receipts-root.js';
import { toQuantity } from '../../../keepers/chain/rpc.js';
import type { Address, Hex } from '../../../core/types.js';

export interface EmittedLog {
  address: Address;
  topics: readonly Hex[];
  data: Hex;
}

export interface SealedTransaction {
  hash: Hex;
  logs: readonly EmittedLog[];
  succeeded?: boolean;
}

interface Unsealed {
  number: number;
  parentHash: Hex;
  timestampSec: number;
  transactions: readonly SealedTransaction[];
  baseFeeWei?: bigint;
  gasUsed?: bigint;
  /** What makes a block another one than one with the same content. */
  salt?: number;
}

export interface RpcLogAnswer {
  address: Address;
  topics: Hex[];
  data: Hex;
  blockNumber: Hex;
  blockHash: Hex;
  transactionHash: Hex;
  transactionIndex: Hex;
  logIndex: Hex;
  removed: boolean;
}

export type RpcReceiptAnswer = Omit<RpcReceipt, 'logs'> & {
  blockNumber: Hex;
  blockHash: Hex;
  transactionHash: Hex;
  gasUsed: Hex;
  effectiveGasPrice: Hex;
  logs: RpcLogAnswer[];
};

export type RpcHeaderAnswer = Record<string, unknown> & {
  hash: Hex;
  number: Hex;
  parentHash: Hex;
  transactions: Hex[];
};

export interface SealedBlock {
  header: RpcHeaderAnswer;
  receipts: RpcReceiptAnswer[];
}

const ZERO: Hex = `0x${'00'.repeat(32)}`;
const NO_OMMERS = '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347';

/** A filter with the bits of these values set. */
export function filterOf(values: readonly Hex[]): Hex {
  const bytes = Buffer.alloc(256);
  for (const bit of values.flatMap((value) => bloomBits(value))) bytes[255 - (bit >> 3)]! |= 1 << (bit & 7);
  return `0x${bytes.toString('hex')}`;
}

const named = (logs: readonly EmittedLog[]): Hex[] => logs.flatMap(({ address, topics }) => [address, ...topics]);

export function sealBlock(block: Unsealed): SealedBlock {
  const { number, parentHash, timestampSec, transactions, baseFeeWei = 1_000_000_000n, gasUsed = 100_000n } = block;
  let logIndex = 0;
  const unplaced = transactions.map(({ hash, logs, succeeded = true }, index): RpcReceiptAnswer => ({
    type: '0x2',
    status: succeeded ? '0x1' : '0x0',
    cumulativeGasUsed: toQuantity(gasUsed * BigInt(index + 1)),
    logsBloom: filterOf(named(logs)),
    blockNumber: toQuantity(number),
    blockHash: ZERO,
    transactionHash: hash,
    gasUsed: toQuantity(gasUsed),
    effectiveGasPrice: toQuantity(baseFeeWei),
    logs: logs.map(({ address, topics, data }) => ({
      address,
      topics: [...topics],
      data,
      blockNumber: toQuantity(number),
      blockHash: ZERO,
      transactionHash: hash,
      transactionIndex: toQuantity(index),
      logIndex: toQuantity(logIndex++),
      removed: false,
    })),
  }));
  const fields = {
    parentHash,
    sha3Uncles: NO_OMMERS,
    miner: `0x${'00'.repeat(20)}`,
    stateRoot: ZERO,
    transactionsRoot: indexedRoot(transactions.map(({ hash }) => hash.slice(2))),
    receiptsRoot: receiptsRoot(unplaced),
    logsBloom: filterOf(transactions.flatMap(({ logs }) => named(logs))),
    difficulty: '0x0',
    number: toQuantity(number),
    gasLimit: toQuantity(60_000_000),
    gasUsed: toQuantity(gasUsed * BigInt(transactions.length)),
    timestamp: toQuantity(timestampSec),
    extraData: `0x${(block.salt ?? 0).toString(16).padStart(8, '0')}`,
    mixHash: ZERO,
    nonce: '0x0000000000000000',
    baseFeePerGas: toQuantity(baseFeeWei),
  };
  const hash = headerHash(fields);
  const header = { ...fields, hash, transactions: transactions.map((one) => one.hash) };
  return { header, receipts: unplaced.map((receipt) => placedIn(receipt, hash)) };
}

/** The same header with other fields, and with the hash that it has then. */
export function resealed(header: RpcHeaderAnswer, change: Record<string, unknown>): RpcHeaderAnswer {
  const fields = { ...header, ...change };
  return { ...fields, hash: headerHash(fields) };
}

function placedIn(receipt: RpcReceiptAnswer, blockHash: Hex): RpcReceiptAnswer {
  return { ...receipt, blockHash, logs: receipt.logs.map((log) => ({ ...log, blockHash })) };
}
