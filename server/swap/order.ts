import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import { readLostFrom } from '../../ledger/chain/halts.js';
import { readSettledOrder, type SettledOrderRow } from '../../ledger/chain/settled-orders.js';
import {
  readAttempts,
  readOrder,
  readOutcome,
  readQuote,
  readTransactions,
  type SwapAttempt,
  type SwapOrder,
  type SwapOutcome,
  type SwapQuote,
} from '../../ledger/swaps/swap-log.js';
import { readOrdersOf, type OrderPlace } from '../../ledger/swaps/owner-orders.js';
import type { Db, Queryable } from '../../ledger/types.js';
import { notFound } from '../errors.js';
import { parseAs } from './body.js';
import type { SwapDeps } from './deps.js';

/** Printable characters without a space. */
const ORDER_ID = /^[\x21-\x7e]{1,64}$/;

export type OrderStatus = 'pending' | 'filled' | 'failed' | 'expired';

interface SwapOrderState {
  quote: SwapQuote;
  settled: SettledOrderRow | null;
  outcome: SwapOutcome | null;
  status: OrderStatus;
}

/** Filled by the settler's event in a durable generation, whatever else is stored; else as the executor ended it; else pending. */
async function stateOf(q: Queryable, order: SwapOrder): Promise<SwapOrderState> {
  const quote = await readQuote(q, order.quoteId);
  if (quote === null) throw new RangeError(`order ${order.id} has lost its quote ${order.quoteId}`);
  const booked = await readSettledOrder(q, { owner: order.owner, nonce: quote.nonce });
  const lostFrom = booked === null ? null : await readLostFrom(q);
  // The chain no longer has the block of the fill: until somebody reconciles, nobody knows whether it will be filled there.
  const settled = booked === null || (lostFrom !== null && booked.blockNumber >= lostFrom) ? null : booked;
  const outcome = settled === null ? await readOutcome(q, order.id) : null;
  return { quote, settled, outcome, status: settled === null ? (outcome?.status ?? 'pending') : 'filled' };
}

/** The status of an order as of one state of the database. */
export async function orderStatus(db: Db, order: SwapOrder): Promise<OrderStatus> {
  return readTx(db, async (tx) => (await stateOf(tx, order)).status);
}

/** GET /api/v1/orders/{orderId}. */
export function orderHandler({ db }: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const id = ctx.params['orderId'] ?? '';
    // Ids are made here; what none can be is not asked for, since PostgreSQL refuses some texts altogether.
    if (!ORDER_ID.test(id)) throw notFound(`Unknown order: ${id.slice(0, 64)}`);
    ctx.body = await readTx(db, async (tx) => {
      const order = await readOrder(tx, id);
      if (order === null) throw notFound(`Unknown order: ${id.slice(0, 64)}`);
      return answerOf(tx, order);
    });
  };
}

const LIST_LIMIT = 20;
const MAX_LIST_LIMIT = 50;
const listQuerySchema = z.object({
  owner: z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an address: 0x and 40 hex digits')
    .transform((value) => value.toLowerCase() as Address),
  limit: z
    .string()
    .regex(/^\d{1,2}$/, `must be 1 to ${MAX_LIST_LIMIT}`)
    .transform((text) => toSafeInt(BigInt(text)))
    .pipe(z.int().min(1).max(MAX_LIST_LIMIT))
    .default(LIST_LIMIT),
  cursor: z
    .string()
    .regex(/^\d{1,15}_[0-9a-f-]{36}$/, 'must be the next of an earlier answer')
    .transform((text): OrderPlace => {
      const [createdMs = '', id = ''] = text.split('_');
      return { createdMs: toSafeInt(BigInt(createdMs)), id };
    })
    .optional(),
});

/** GET /api/v1/orders?owner=: an owner's orders, newest first. Whoever asks sees them, as fills on the chain. */
export function ordersHandler({ db }: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const { owner, limit, cursor = null } = parseAs(listQuerySchema, ctx.query);
    ctx.body = await readTx(db, async (tx) => {
      // One more than asked for tells whether there is more.
      const found = await readOrdersOf(tx, owner, cursor, limit + 1);
      const shown = found.slice(0, limit);
      const last = found.length > limit ? shown.at(-1) : undefined;
      const orders = [];
      for (const order of shown) orders.push(await answerOf(tx, order));
      return { orders, next: last === undefined ? null : `${last.createdMs}_${last.id}` };
    });
  };
}

async function answerOf(q: Queryable, order: SwapOrder) {
  const { quote, settled, outcome, status } = await stateOf(q, order);
  const attempts = await readAttempts(q, order.id);
  return {
    orderId: order.id,
    quoteId: order.quoteId,
    clientOrderId: order.clientOrderId,
    status,
    sellToken: quote.sellToken,
    buyToken: quote.buyToken,
    sellAmount: quote.sellUnits.toString(),
    buyAmount: quote.buyUnits.toString(),
    executedSellAmount: (settled?.amountInUnits ?? 0n).toString(),
    executedBuyAmount: (settled?.amountOutUnits ?? 0n).toString(),
    txHash: settled?.txHash ?? null,
    reason: status === 'filled' ? null : reasonOf(outcome, attempts),
    attempts: await Promise.all(attempts.map((attempt) => attemptOf(q, attempt))),
  };
}

/** Why it ended; while it is pending, why the newest attempt was not sent. */
function reasonOf(outcome: SwapOutcome | null, attempts: readonly SwapAttempt[]) {
  const newest = attempts.at(-1);
  const source = outcome ?? (newest?.result === 'refused' ? newest : null);
  return source === null ? null : { code: source.code, message: source.message };
}

async function attemptOf(q: Queryable, attempt: SwapAttempt) {
  const at = new Date(attempt.timeMs).toISOString();
  if (attempt.result === 'refused') return { at, result: attempt.result, code: attempt.code, txHashes: [] };
  const txHashes = (await readTransactions(q, attempt.txKey)).map(({ hash }) => hash);
  return { at, result: attempt.result, code: null, txHashes };
}
