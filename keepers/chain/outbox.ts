import { Transaction, Wallet } from 'ethers';
import type { Logger } from 'pino';
import { maxBig, toSafeInt } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { finishOutbox, insertOutbox, readOutbox } from '../../ledger/outbox.js';
import type { Db, OutboxRow, Writer } from '../../ledger/types.js';
import { RpcResponseError, type Rpc } from './rpc.js';

export interface TxRequest {
  /** Names the act behind the transaction; several prepared rows may share it. */
  txKey: string;
  to: Address;
  data: Hex;
  gasLimit: bigint;
  /** Chain time after which mining it is of no use. */
  validUntilSec: number | null;
}

export interface SentTx {
  hash: Hex;
  nonce: number;
  /** True when it took the place of an unmined one. */
  replaced: boolean;
}

/**
 * The only way in which a keeper sends: sign, store, broadcast. A crash after storing rebroadcasts the same bytes. An unmined
 * transaction is replaced at its nonce, so that nonces never have gaps. One signer per outbox.
 */
export interface Outbox {
  readonly signer: Address;
  /** Signs at the first unused nonce, stores, broadcasts. A broadcast that the node refused is repeated by `resume`. */
  send(request: TxRequest): Promise<SentTx>;
  /** Broadcasts the newest stored transaction again unless it is mined or out of date, and marks mined nonces finished. */
  resume(headTimestampSec: number): Promise<void>;
}

export interface OutboxDeps {
  db: Db;
  writer: Writer;
  rpc: Rpc;
  chainId: number;
  privateKey: Hex;
  nowMs(): number;
  logger: Logger;
}

/** Nodes ask for 10 % at least; 12.5 % is what the field settled on. */
const bump = (fee: bigint): bigint => (fee * 1_125n) / 1_000n + 1n;
const MIN_PRIORITY_WEI = 1_000_000n;

/** An outbox for one key. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, writer, rpc, logger } = deps;
  const wallet = new Wallet(deps.privateKey);
  const signer = wallet.address.toLowerCase() as Address;

  async function confirmedNonce(): Promise<number> {
    return toSafeInt(BigInt((await rpc.call('eth_getTransactionCount', [signer, 'latest'])) as Hex));
  }

  /** Twice the base fee covers six full blocks of its fastest rise; a replacement also outbids what it replaces. */
  async function fees(replaced: OutboxRow | undefined): Promise<{ maxFee: bigint; priority: bigint }> {
    const block = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as { baseFeePerGas?: Hex };
    const baseFee = BigInt(block.baseFeePerGas ?? '0x0');
    const before = replaced === undefined ? null : Transaction.from(replaced.raw);
    const priority = maxBig(MIN_PRIORITY_WEI, before === null ? 0n : bump(before.maxPriorityFeePerGas ?? 0n));
    const maxFee = maxBig(2n * baseFee + priority, before === null ? 0n : bump(before.maxFeePerGas ?? 0n));
    return { maxFee, priority };
  }

  async function broadcast(row: OutboxRow): Promise<void> {
    try {
      await rpc.call('eth_sendRawTransaction', [row.raw]);
    } catch (error) {
      // The node answered: it has the transaction already, or it was mined or replaced meanwhile. The chain decides which.
      if (!(error instanceof RpcResponseError)) throw error;
      if (!/already known|known transaction|already imported/i.test(error.message)) {
        logger.warn({ txKey: row.txKey, hash: row.hash, err: error.message }, 'the node refused a transaction');
      }
    }
  }

  return {
    signer,
    async send(request) {
      const nonce = await confirmedNonce();
      const pending = (await readOutbox(db.knex, signer)).filter((row) => row.nonce === nonce);
      const replaced = pending[pending.length - 1];
      const { maxFee, priority } = await fees(replaced);
      const raw = (await wallet.signTransaction({
        type: 2,
        chainId: deps.chainId,
        nonce,
        to: request.to,
        data: request.data,
        gasLimit: request.gasLimit,
        maxFeePerGas: maxFee,
        maxPriorityFeePerGas: priority,
      })) as Hex;
      const row: OutboxRow = {
        txKey: request.txKey,
        signer,
        nonce,
        to: request.to,
        raw,
        hash: Transaction.from(raw).hash as Hex,
        sentMs: deps.nowMs(),
        validUntilSec: request.validUntilSec,
      };
      await writer.tx((tx) => insertOutbox(tx, row));
      await broadcast(row);
      return { hash: row.hash, nonce, replaced: replaced !== undefined };
    },

    async resume(headTimestampSec) {
      const unfinished = await readOutbox(db.knex, signer);
      if (unfinished.length === 0) return;
      const nonce = await confirmedNonce();
      if (unfinished.some((row) => row.nonce < nonce)) await writer.tx((tx) => finishOutbox(tx, signer, nonce));
      const open = unfinished.filter(
        (row) => row.nonce >= nonce && (row.validUntilSec === null || row.validUntilSec > headTimestampSec),
      );
      const newest = open[open.length - 1];
      if (newest !== undefined) await broadcast(newest);
    },
  };
}
