import { Transaction, Wallet } from 'ethers';
import type { Logger } from 'pino';
import { minBig } from '../../core/amounts.js';
import type { Address, Hex } from '../../core/types.js';
import { onOne } from '../../liquidity/eth.js';
import {
  finishOutbox,
  insertOutbox,
  lastFinishedNonce,
  lastNonce,
  readOutbox,
  readOutboxFrom,
  reopenOutbox,
  type ListedOutboxRow,
} from '../../ledger/transactions/outbox.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import type { Db, OutboxRow, Transaction as LedgerTransaction, Writer } from '../../ledger/types.js';
import type { ProvenBlock } from './account-proof.js';
import { createBaseFees } from './base-fees.js';
import { FeeCeilingError, chooseFees, feesOf, freshBidWei, isAffordable } from './fees.js';
import { createNonceWatch, type UsedNonces } from './nonces.js';
import { surveyOf } from './quorum.js';
import { createRetiredSigners, type ServedContract } from './retired-signers.js';
import { RpcResponseError, type Rpc } from './rpc.js';

export interface TxRequest {
  /** Names the act behind the transaction; several prepared rows may share it. */
  txKey: string;
  to: Address;
  data: Hex;
  gasLimit: bigint;
  /** Chain time after which mining it is of no use. */
  validUntilSec: number | null;
  /**
   * Most wei per gas for this transaction, below the ceiling. Its bid is never raised beyond it; when it can't pay the base fee any more it
   * waits, or, when others wait behind it, is replaced by a transfer. Default: the ceiling.
   */
  maxFeeWei?: bigint | null;
  /** Called within the database transaction that stores the first signed transaction: with false nothing is signed. Default: true. */
  isWanted?(tx: LedgerTransaction): Promise<boolean>;
}

/** A transaction was no longer wanted (`isWanted`) before it was signed. */
export class UnwantedError extends Error {
  constructor(txKey: string) {
    super(`${txKey} is not wanted any more`);
    this.name = 'UnwantedError';
  }
}

export interface SentTx {
  hash: Hex;
  nonce: number;
  /** True when it took the place of an unmined one. */
  replaced: boolean;
}

/** Status of a signer, for operators. */
export interface OutboxStatus {
  signer: Address;
  /** Null until it was read for the first time. */
  balanceWei: bigint | null;
  lowBalance: boolean;
  /** Nonces that are signed and not mined, as of the last `resume`. */
  unminedCount: number;
  /** When the oldest of them was signed. */
  oldestSentMs: number | null;
  /** The node's last refusal, null once it accepted a transaction again. */
  lastRefusal: string | null;
  /** Transfers to itself since the start that filled a gap between nonces. */
  gapTransfers: number;
  /** Reported counts of used nonces that were rejected since the start. */
  nonceDoubts: number;
}

/** Those of the keys whose transactions must have no effect any more. */
type Withdrawn = (txKeys: readonly string[]) => Promise<ReadonlySet<string>>;

/**
 * All transactions of keepers are sent through it: sign, store, broadcast. After a crash the stored bytes are broadcast again. Nonces never
 * have gaps. One signer per outbox, one outbox per signer.
 */
export interface Outbox {
  readonly signer: Address;
  /**
   * False when a fresh transaction would have to bid more than the ceiling; `send` would throw then. Uses this base fee of one endpoint,
   * or, if that is too high, the median of all endpoints.
   */
  affords(baseFeeWei: bigint): Promise<boolean>;
  /** Most wei per gas that a fresh transaction bids at this base fee. */
  bidWei(baseFeeWei: bigint): bigint;
  /**
   * Signs, stores, broadcasts. With `order: 'replace'` at the first unused nonce, replacing an unmined transaction there; with `'queue'`
   * after everything that is unmined. A broadcast that the node refused is repeated by `resume`. Throws FeeCeilingError, and UnwantedError.
   */
  send(request: TxRequest): Promise<SentTx>;
  /**
   * Several at once, one nonce after the other from where `send` would begin. Nothing is signed from the first one on that would exceed the
   * ceiling; throws FeeCeilingError when that is the first of all.
   */
  sendAll(requests: readonly TxRequest[]): Promise<SentTx[]>;
  /**
   * Looks after unmined transactions, once per call: broadcasts the stored bytes again, raises the fee of a stuck one, replaces an outdated
   * one and fills a gap by a transfer to the signer itself, marks mined nonces finished, and undoes that when the chain dropped them.
   * `withdrawn` says which of the given keys are those of transactions that are outdated at any time; it is asked once it is stored which
   * transactions are unmined.
   */
  resume(headTimestampSec: number, withdrawn?: Withdrawn): Promise<void>;
  /** How many nonces the chain had used at the end of a block, according to most of the endpoints; of the signer, or of an earlier one. */
  usedAt(block: number, signer?: Address): Promise<number>;
  status(): OutboxStatus;
}

export interface OutboxDeps {
  db: Db;
  writer: Writer;
  rpc: Rpc;
  chainId: number;
  privateKey: Hex;
  /** Wall clock, for what is stored. */
  nowMs(): number;
  /** For intervals; a step of the wall clock must not change them. Default: `nowMs`. */
  monotonicMs?(): number;
  logger: Logger;
  /** The newest block whose hash is proven, by which endpoints that differ on nonces are judged. Default: the ledger's last one. */
  provenBlock?(): Promise<ProvenBlock | null>;
  /**
   * The contract that the transactions call, by which unfinished transactions of earlier keys are found; those are ignored when it is
   * absent.
   */
  serves?: ServedContract;
  /** Whether a new transaction replaces an unmined one, as for curves, or waits behind it. Default: replace. */
  order?: 'replace' | 'queue';
  /** Most wei per gas. Default: 50 gwei. */
  feeCeilingWei?: bigint;
  /** An unmined transaction is stuck, and its fee is raised, this long after it was signed. Default: 4 s, two blocks. */
  stuckMs?: number;
  /** Below this balance the signer is reported. Default: 0.01 ether. */
  lowBalanceWei?: bigint;
}

const DEFAULT_CEILING_WEI = 50_000_000_000n;
const DEFAULT_LOW_BALANCE_WEI = 10n ** 16n;
const NONE: ReadonlySet<string> = new Set();
const DEFAULT_STUCK_MS = 4_000;
const BALANCE_INTERVAL_MS = 30_000;
const TRANSFER_GAS = 21_000n;
/** Most nonces that one `resume` handles. */
const MAX_OPEN_NONCES = 64;
/** Most transfers to itself that fill gaps within a period: wrongly reported gaps must not cost without a limit. */
const MAX_GAP_TRANSFERS = 32;
const GAP_WINDOW_MS = 60_000;
const KNOWN_ALREADY = /already known|known transaction|already imported|already exists/i;

/** An outbox for one key. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, writer, rpc, logger, order = 'replace', stuckMs = DEFAULT_STUCK_MS } = deps;
  const { monotonicMs = deps.nowMs } = deps;
  const ceilingWei = deps.feeCeilingWei ?? DEFAULT_CEILING_WEI;
  const lowBalanceWei = deps.lowBalanceWei ?? DEFAULT_LOW_BALANCE_WEI;
  const wallet = new Wallet(deps.privateKey);
  const signer = wallet.address.toLowerCase() as Address;
  const status: OutboxStatus = {
    signer,
    balanceWei: null,
    lowBalance: false,
    unminedCount: 0,
    oldestSentMs: null,
    lastRefusal: null,
    gapTransfers: 0,
    nonceDoubts: 0,
  };
  const provenBlock = deps.provenBlock ?? (() => ledgerBlock(db));
  const nonces = createNonceWatch({ rpc, signer, provenBlock, monotonicMs, logger });
  const retired = createRetiredSigners({ ...deps, serves: deps.serves ?? null, signer, provenBlock, monotonicMs });
  const baseFees = createBaseFees(rpc, monotonicMs);
  /** When unmined transactions were first seen, by hash: those signed before a restart, or by another clock, are timed from then on. */
  let seenMs = new Map<Hex, number>();
  /** A node refused a transaction for its nonce: the known nonces may be wrong. */
  let nonceRefused = false;
  /** A transaction has not been mined for too long: the endpoint in use may not forward what it accepts. */
  let isStuck = false;
  /** Times of recently filled gaps. */
  let gapsFilledMs: number[] = [];
  let balanceReadMs = Number.NEGATIVE_INFINITY;
  let tail: Promise<unknown> = Promise.resolve();

  /** One call at a time, because concurrent ones would choose the same nonce. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = tail.then(work);
    tail = result.catch(() => undefined);
    return result;
  }

  async function usedNonces(): Promise<UsedNonces & { last: number | null }> {
    const last = await lastNonce(db.knex, signer);
    const signed = { last, lastFinished: await lastFinishedNonce(db.knex, signer) };
    isStuck = [...seenMs.values()].some((sinceMs) => monotonicMs() - sinceMs >= stuckMs);
    const used = await nonces.used(signed, isStuck || nonceRefused);
    nonceRefused = false;
    return { last, ...used };
  }

  async function broadcast(row: OutboxRow): Promise<void> {
    let isTaken = false;
    let refusal: RpcResponseError | null = null;
    /** Having it already is an answer like taking it; a refusal is none, so that whoever is passed over is asked, too. */
    const send = async (one: Rpc): Promise<void> => {
      try {
        await one.call('eth_sendRawTransaction', [row.raw]);
        isTaken = true;
      } catch (error) {
        if (!(error instanceof RpcResponseError)) throw error;
        if (KNOWN_ALREADY.test(error.message)) return;
        refusal ??= error;
        throw error;
      }
    };
    try {
      if (isStuck) await surveyOf(rpc, send);
      else await send(rpc);
      if (isTaken) status.lastRefusal = null;
    } catch (error) {
      // A node answered: it was mined or replaced meanwhile. The chain decides which. Another one's silence changes nothing about that.
      if (refusal === null) throw error;
      const { message } = refusal as RpcResponseError;
      status.lastRefusal = message;
      if (/nonce/i.test(message)) nonceRefused = true;
      logger.warn({ txKey: row.txKey, hash: row.hash, err: message }, 'the node refused a transaction');
    }
  }

  /** Most per gas that is bid for it. */
  const boundOf = ({ maxFeeWei }: Pick<TxRequest, 'maxFeeWei'>): bigint => minBig(maxFeeWei ?? ceilingWei, ceilingWei);

  async function signAndStore(request: TxRequest, nonce: number, replaced: OutboxRow | undefined): Promise<OutboxRow> {
    const { maxFeeWei, priorityWei } = chooseFees(
      await baseFees.read(ceilingWei),
      boundOf(request),
      replaced === undefined ? null : feesOf(replaced.raw),
    );
    const raw = (await wallet.signTransaction({
      type: 2,
      chainId: deps.chainId,
      nonce,
      to: request.to,
      data: request.data,
      gasLimit: request.gasLimit,
      maxFeePerGas: maxFeeWei,
      maxPriorityFeePerGas: priorityWei,
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
      maxFeeWei: request.maxFeeWei ?? null,
    };
    await writer.tx(async (tx) => {
      if ((await request.isWanted?.(tx)) === false) throw new UnwantedError(request.txKey);
      await insertOutbox(tx, row);
    });
    seenMs.set(row.hash, monotonicMs());
    return row;
  }

  async function sendAll(requests: readonly TxRequest[]): Promise<SentTx[]> {
    const { agreed, claimed, last } = await usedNonces();
    // For a replacement the newest number is best, since nodes refuse a used nonce at once; it is limited to what was signed.
    const first = order === 'replace' ? claimed : Math.max(agreed, (last ?? -1) + 1);
    const open = await readOutboxFrom(db.knex, signer, first);
    const sent: SentTx[] = [];
    for (const [i, request] of requests.entries()) {
      const nonce = first + i;
      const replaced = highestFee(open.filter((row) => row.nonce === nonce));
      try {
        const row = await signAndStore(request, nonce, replaced);
        await broadcast(row);
        sent.push({ hash: row.hash, nonce, replaced: replaced !== undefined });
      } catch (error) {
        if (i > 0 && error instanceof FeeCeilingError) break;
        throw error;
      }
    }
    return sent;
  }

  async function resume(headTimestampSec: number, withdrawn: Withdrawn): Promise<void> {
    await readBalance();
    await retired.look(headTimestampSec);
    const { agreed: nonce, claimed } = await usedNonces();
    const unfinished = await readOutbox(db.knex, signer);
    if (unfinished.some((row) => row.nonce < nonce)) await writer.tx((tx) => finishOutbox(tx, signer, nonce));
    const open = await readOutboxFrom(db.knex, signer, nonce);
    if (open.some((row) => row.finished)) {
      logger.warn({ signer, nonce }, 'the chain dropped mined transactions; sending them again');
      await writer.tx((tx) => reopenOutbox(tx, signer, nonce));
    }
    noteUnmined(open);
    const outdated = open.length === 0 ? NONE : await withdrawn([...new Set(open.map((row) => row.txKey))]);
    const last = open.at(-1)?.nonce ?? nonce - 1;
    // Transactions that only one endpoint reports as mined are neither resent nor finished until another one confirms it.
    for (let at = claimed; at <= Math.min(last, nonce + MAX_OPEN_NONCES - 1); at++) {
      await advance(
        at,
        open.filter((row) => row.nonce === at),
        at < last,
        (row) => outdated.has(row.txKey) || (row.validUntilSec !== null && row.validUntilSec <= headTimestampSec),
      );
    }
  }

  /** Handles one unmined nonce; `isAwaited` when others wait behind it. */
  async function advance(
    nonce: number,
    rows: readonly OutboxRow[],
    isAwaited: boolean,
    isOutOfDate: (row: OutboxRow) => boolean,
  ): Promise<void> {
    const newest = highestFee(rows);
    if (newest === undefined) {
      if (!mayFillGap()) return;
      logger.warn({ signer, nonce }, 'filling a gap between nonces');
      status.gapTransfers += 1;
      return broadcast(await signAndStore(selfTransfer(nonce, 'gap'), nonce, undefined));
    }
    const outOfDate = isOutOfDate(newest);
    const stuck = monotonicMs() - (seenMs.get(newest.hash) ?? monotonicMs()) >= stuckMs;
    if (!outOfDate && !stuck) return broadcast(newest);
    try {
      const request = outOfDate ? selfTransfer(nonce, 'expired') : requestOf(newest);
      await broadcast(await signAndStore(request, nonce, newest));
    } catch (error) {
      if (!(error instanceof FeeCeilingError)) throw error;
      logger.warn({ signer, nonce, txKey: newest.txKey, err: error.message }, 'can not raise the fee further');
      if (isAwaited && (await makesWay(nonce, newest))) return;
      await broadcast(newest);
    }
  }

  /** Replaces a transaction whose own bound is below the base fee by a transfer, so that those behind it are mined. */
  async function makesWay(nonce: number, newest: OutboxRow): Promise<boolean> {
    const isBound = boundOf(newest) < ceilingWei;
    if (!isBound || feesOf(newest.raw).maxFeeWei >= (await baseFees.read(ceilingWei))) return false;
    try {
      await broadcast(await signAndStore(selfTransfer(nonce, 'expired'), nonce, newest));
      return true;
    } catch (error) {
      if (error instanceof FeeCeilingError) return false;
      throw error;
    }
  }

  /** Whether another gap may be filled now; logs it when that was the last one for the period. */
  function mayFillGap(): boolean {
    const now = monotonicMs();
    gapsFilledMs = gapsFilledMs.filter((atMs) => now - atMs < GAP_WINDOW_MS);
    if (gapsFilledMs.length >= MAX_GAP_TRANSFERS) return false;
    gapsFilledMs.push(now);
    if (gapsFilledMs.length === MAX_GAP_TRANSFERS)
      logger.error({ signer }, 'many gaps between nonces; they are filled slowly');
    return true;
  }

  function selfTransfer(nonce: number, why: 'gap' | 'expired'): TxRequest {
    return { txKey: `${why}:${nonce}`, to: signer, data: '0x', gasLimit: TRANSFER_GAS, validUntilSec: null };
  }

  async function readBalance(): Promise<void> {
    if (monotonicMs() - balanceReadMs < BALANCE_INTERVAL_MS) return;
    const balanceWei = await onOne(rpc, async (one) =>
      BigInt((await one.call('eth_getBalance', [signer, 'latest'])) as Hex),
    );
    balanceReadMs = monotonicMs();
    status.balanceWei = balanceWei;
    status.lowBalance = balanceWei < lowBalanceWei;
    if (status.lowBalance) {
      const amounts = { balanceWei: balanceWei.toString(), lowBalanceWei: lowBalanceWei.toString() };
      logger.error({ signer, ...amounts }, 'the balance of a signer is low');
    }
  }

  function noteUnmined(open: readonly ListedOutboxRow[]): void {
    seenMs = new Map(open.map(({ hash }) => [hash, seenMs.get(hash) ?? monotonicMs()]));
    status.unminedCount = new Set(open.map((row) => row.nonce)).size;
    status.oldestSentMs = open.length === 0 ? null : Math.min(...open.map((row) => row.sentMs));
  }

  return {
    signer,
    affords: async (baseFeeWei) =>
      isAffordable(baseFeeWei, ceilingWei) || isAffordable(await baseFees.read(ceilingWei), ceilingWei),
    bidWei: (baseFeeWei) => freshBidWei(baseFeeWei, ceilingWei),
    send: (request) => inTurn(async () => (await sendAll([request]))[0]!),
    sendAll: (requests) => inTurn(() => sendAll(requests)),
    resume: (headTimestampSec, withdrawn = () => Promise.resolve(NONE)) =>
      inTurn(() => resume(headTimestampSec, withdrawn)),
    usedAt: (block, account) => nonces.usedAt(block, account),
    status: () => ({ ...status, nonceDoubts: nonces.doubts() }),
  };
}

async function ledgerBlock(db: Db): Promise<ProvenBlock | null> {
  const last = await lastGeneration(db.knex);
  return last === null ? null : { number: last.toBlock, hash: last.blockHash };
}

/** The row that nodes keep of one nonce's rows: each replacement outbids what it replaces. */
function highestFee<T extends OutboxRow>(rows: readonly T[]): T | undefined {
  return rows.reduce<T | undefined>(
    (best, row) => (best === undefined || feesOf(row.raw).maxFeeWei > feesOf(best.raw).maxFeeWei ? row : best),
    undefined,
  );
}

/** The request for sending the same transaction again at another fee. */
function requestOf(row: OutboxRow): TxRequest {
  const { to, data, gasLimit } = Transaction.from(row.raw);
  return {
    txKey: row.txKey,
    to: (to ?? row.to).toLowerCase() as Address,
    data: data as Hex,
    gasLimit,
    validUntilSec: row.validUntilSec,
    maxFeeWei: row.maxFeeWei ?? null,
  };
}
