/** Receipts that no endpoint had when what they cost was given up: they are asked for again, since an endpoint may have hidden them. */
import type { Hex } from '../../core/types.js';
import {
  dropCosts,
  insertCosts,
  readUnknownCosts,
  type CostRole,
  type TransactionCost,
} from '../../ledger/transactions/costs.js';
import { readHashesAt, readTxKey } from '../../ledger/transactions/outbox.js';
import type { Db, Transaction, Writer } from '../../ledger/types.js';
import { readReceipts, saidBy, type TxReceipt } from './receipts.js';
import { RpcResponseError, RpcUnavailableError, type Rpc } from './rpc.js';

/** Nonces looked at in one go. */
const PAGE = 50;
/** Receipts asked for at a time: endpoints limit what one request may hold, and a nonce may have many replacements. */
const BATCH = 50;
/** How often receipts are asked for that no endpoint had. */
const INTERVAL_MS = 60_000;

/** How a nonce ended, and by which of the transactions that were signed for it. */
type End = { hash: Hex } & ReturnType<typeof saidBy>;

/** How each of these nonces ended, by the receipts of now; null where no endpoint has any. */
export async function endsOf(
  { db, rpc }: { db: Db; rpc: Rpc },
  costs: readonly Pick<TransactionCost, 'signer' | 'nonce'>[],
): Promise<(End | null)[]> {
  const signed: { i: number; hash: Hex }[] = [];
  for (const [i, { signer, nonce }] of costs.entries()) {
    for (const hash of await readHashesAt(db.knex, signer, nonce)) signed.push({ i, hash });
  }
  const receipts: (TxReceipt | null)[] = [];
  for (let at = 0; at < signed.length; at += BATCH) {
    const hashes = signed.slice(at, at + BATCH).map(({ hash }) => hash);
    receipts.push(...(await readReceipts(rpc, hashes, { isLast: true })));
  }
  return costs.map((_, at) => {
    const found = signed.findIndex(({ i }, k) => i === at && (receipts[k] ?? null) !== null);
    return found === -1 ? null : { hash: signed[found]!.hash, ...saidBy(receipts[found]!) };
  });
}

interface UnknownCostsDeps {
  role: CostRole;
  db: Db;
  writer: Writer;
  rpc: Rpc;
  /** For intervals only. */
  monotonicMs(): number;
  /** What becomes durable with each that was looked at, in its transaction; `found` is null where still nobody has a receipt. */
  also?(tx: Transaction, unknown: TransactionCost, found: TransactionCost | null): Promise<void>;
}

/**
 * The costs of a role that were noted as unknown, whichever of its keys signed them. A call asks for the next page of them, at most once a minute, and
 * returns those that were found and are noted now, with the time at which they were given up: some minutes after their block, whenever they come to
 * light, so that they count in the hour and on the day in which they were paid. An endpoint that does not answer finds none and is no error.
 */
export function createUnknownCosts(deps: UnknownCostsDeps): { find(): Promise<TransactionCost[]> } {
  const { role, db, writer, rpc, monotonicMs, also } = deps;
  let askedMs = monotonicMs();
  let last = { signer: '', nonce: -1 };

  async function endsNow(costs: readonly TransactionCost[]): Promise<(End | null)[]> {
    try {
      return await endsOf({ db, rpc }, costs);
    } catch (error) {
      if (error instanceof RpcUnavailableError || error instanceof RpcResponseError) return [];
      throw error;
    }
  }

  return {
    async find() {
      if (monotonicMs() - askedMs < INTERVAL_MS) return [];
      askedMs = monotonicMs();
      const costs = await readUnknownCosts(db.knex, role, last, PAGE);
      last = costs.length < PAGE ? { signer: '', nonce: -1 } : costs.at(-1)!;
      const found: TransactionCost[] = [];
      for (const [i, end] of (await endsNow(costs)).entries()) {
        const unknown = costs[i]!;
        if (end === null && also === undefined) continue;
        await writer.tx(async (tx) => {
          if (end === null) return also!(tx, unknown, null);
          const { signer, nonce, seenMs } = unknown;
          await dropCosts(tx, role, { signer, from: nonce, to: nonce });
          const cost = { signer, nonce, ...end, txKey: await readTxKey(tx, end.hash), seenMs };
          await insertCosts(tx, role, [cost]);
          await also?.(tx, unknown, cost);
          found.push(cost);
        });
      }
      return found;
    },
  };
}
