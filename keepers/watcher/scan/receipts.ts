import { toSafeInt } from '../../../core/amounts.js';
import type { Address, Hex } from '../../../core/types.js';
import { parseRpcLog, type RawLog } from '../../chain/logs.js';
import { receiptsRoot, type RpcReceipt } from '../../chain/receipts-root.js';
import {
  BATCH_BYTES,
  RpcResponseError,
  RpcUnavailableError,
  toQuantity,
  type Rpc,
  type RpcRequest,
} from '../../chain/rpc.js';
import { BATCH_SIZE, type Header } from './headers.js';

/** The receipts of a block as one endpoint has them. */
export interface ReceiptsAnswer {
  /** True when they hash to the root in the header: there is no other set of logs in that block. */
  isProven: boolean;
  /** Logs of the addresses that were asked for, in the block's order. */
  logs: RawLog[];
}

/**
 * A log without data and topics costs 375 gas, of which a fifth may be refunded, and has 366 bytes as nodes write it: nothing has more bytes
 * for its gas. The header says how much was used, so that nobody can fill a block with more than is read.
 */
const BYTES_PER_GAS = 1.5;
/** For what has no gas, such as brackets and rollups' own transactions. */
const LEAST_BYTES = 2 * 2 ** 20;
/** Of one block; a text of a few more is more than the runtime can hold. */
const MOST_BYTES = 480 * 2 ** 20;
/** Most transactions whose receipts are asked for in one round trip: each has about a kilobyte and more. */
const BATCH_TRANSACTIONS = 1_000;
const METHOD_NOT_FOUND = -32_601;
const METHOD_NOT_SUPPORTED = -32_004;

/** Endpoints that said that they don't know eth_getBlockReceipts. */
const oneByOne = new WeakSet<Rpc>();

/**
 * Reads all receipts of blocks from one endpoint, the blocks in the order given. Throws RpcUnavailableError where it lacks some, RangeError
 * or TypeError where they are none.
 */
export async function readReceipts(
  rpc: Rpc,
  headers: readonly Header[],
  addresses: readonly Address[],
): Promise<ReceiptsAnswer[]> {
  const wanted = new Set<string>(addresses);
  const answers: ReceiptsAnswer[] = [];
  for (const part of portions(headers)) {
    const receipts = await readPortion(rpc, part);
    answers.push(...part.map((header, i) => judge(header, receipts[i]!, wanted)));
  }
  return answers;
}

function judge(header: Header, receipts: readonly RpcReceipt[], wanted: ReadonlySet<string>): ReceiptsAnswer {
  const logs: RawLog[] = [];
  let logIndex = 0;
  receipts.forEach((receipt, i) => {
    for (const log of receipt.logs) {
      if (wanted.has(log.address.toLowerCase())) logs.push(placed(header, header.txHashes[i]!, logIndex, log));
      logIndex += 1;
    }
  });
  return { isProven: hashesToRoot(header, receipts), logs };
}

/** Where a log stands follows from its place among the receipts, which is proven; what it says of that itself is not. */
function placed(header: Header, transactionHash: string, logIndex: number, log: object): RawLog {
  return parseRpcLog({
    ...log,
    blockNumber: toQuantity(header.number),
    blockHash: header.hash,
    transactionHash,
    logIndex: toQuantity(logIndex),
  });
}

function hashesToRoot(header: Header, receipts: readonly RpcReceipt[]): boolean {
  try {
    return receiptsRoot(receipts) === header.receiptsRoot;
  } catch {
    return false;
  }
}

/** Most bytes that the receipts of a block can have, by the gas that it used. */
function receiptsBytes({ answer }: Header): number {
  const gas = BigInt((answer['gasUsed'] ?? '0x0') as string);
  return gas > MOST_BYTES ? MOST_BYTES : Math.min(LEAST_BYTES + Math.ceil(BYTES_PER_GAS * toSafeInt(gas)), MOST_BYTES);
}

/** As many blocks at once as are not too much for one answer; one at least. */
function portions(headers: readonly Header[]): Header[][] {
  const parts: Header[][] = [];
  let transactions = 0;
  let bytes = 0;
  for (const header of headers) {
    transactions += header.txHashes.length;
    bytes += receiptsBytes(header);
    const part = parts.at(-1);
    const isTooMuch = transactions > BATCH_TRANSACTIONS || bytes > BATCH_BYTES || (part?.length ?? 0) >= BATCH_SIZE;
    if (part === undefined || isTooMuch) {
      parts.push([header]);
      transactions = header.txHashes.length;
      bytes = receiptsBytes(header);
    } else part.push(header);
  }
  return parts;
}

/** In one request per block where the node knows it, else in one per transaction. */
async function readPortion(rpc: Rpc, headers: readonly Header[]): Promise<RpcReceipt[][]> {
  const whole = oneByOne.has(rpc) ? null : await readWhole(rpc, headers);
  if (whole !== null) return whole.map((answer, i) => checked(rpc, headers[i]!, answer));
  const answers: RpcReceipt[][] = [];
  for (const header of headers) answers.push(checked(rpc, header, await readEach(rpc, header)));
  return answers;
}

async function readWhole(rpc: Rpc, headers: readonly Header[]): Promise<unknown[] | null> {
  try {
    const answers = await rpc.batch(headers.map(wholeRequest));
    return answers.every(Array.isArray) ? answers : null;
  } catch (error) {
    if (!(error instanceof RpcResponseError)) throw error;
    if (error.code === METHOD_NOT_FOUND || error.code === METHOD_NOT_SUPPORTED) oneByOne.add(rpc);
    return null;
  }
}

const wholeRequest = (header: Header): RpcRequest => ({
  method: 'eth_getBlockReceipts',
  params: [header.hash],
  maxBytes: receiptsBytes(header),
});

async function readEach(rpc: Rpc, header: Header): Promise<unknown[]> {
  const { txHashes } = header;
  // Of each transaction, for any of them may have used all of the gas.
  const maxBytes = receiptsBytes(header);
  const answers: unknown[] = [];
  for (let at = 0; at < txHashes.length; at += BATCH_SIZE) {
    const part = txHashes.slice(at, at + BATCH_SIZE);
    const requests = part.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash], maxBytes }));
    answers.push(...(await rpc.batch(requests)));
  }
  return answers;
}

/** Throws RpcUnavailableError where a receipt is missing, or of another block: the node is behind, or its history changed. */
function checked(rpc: Rpc, header: Header, answer: unknown): RpcReceipt[] {
  const receipts = answer as ((RpcReceipt & { blockHash?: Hex | null }) | null)[];
  const ours = receipts.every((one) => one !== null && (one.blockHash ?? header.hash).toLowerCase() === header.hash);
  if (!ours || receipts.length !== header.txHashes.length)
    throw new RpcUnavailableError(`${rpc.name} lacks receipts of block ${header.number}`);
  return receipts as RpcReceipt[];
}
