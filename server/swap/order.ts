import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import { readLostFrom } from '../../ledger/chain/halts.js';
import { readFillsOfOrder, readSettledOrder, type SettledOrderRow } from '../../ledger/chain/settled-orders.js';
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
import { isCancelled } from '../../ledger/swaps/swap-cancellations.js';
import { readOrdersOf, type OrderPlace } from '../../ledger/swaps/owner-orders.js';
import type { Db, Queryable } from '../../ledger/types.js';
import { notFound } from '../errors.js';
import { parseAs } from './body.js';
import { decodeRoute, impactIn } from '../../liquidity/planner.js';
import type { SwapDeps } from './deps.js';
import { partnerOf } from './partner.js';
import { routeAnswer } from './impact.js';

/** Printable characters without a space. */
export const ORDER_ID = /^[\x21-\x7e]{1,64}$/;

/** What the answer about an order is made from. */
type OrderDeps = Pick<SwapDeps, 'db' | 'markets' | 'explorerUrl'>;

type OrderStatus = 'pending' | 'filled' | 'failed' | 'expired';

interface SwapOrderState {
  quote: SwapQuote;
  settled: SettledOrderRow | null;
  outcome: Pick<SwapOutcome, 'status' | 'code' | 'message'> | null;
  /** It was filled in a block that the chain no longer has, and the operator has not reconciled the ledger yet. */
  isLost: boolean;
  status: OrderStatus;
}

/** Filled if a durable generation has the settler's event, whatever else is stored; else as the executor ended it; else pending. */
async function stateOf(q: Queryable, order: SwapOrder): Promise<SwapOrderState> {
  const quote = await readQuote(q, order.quoteId);
  if (quote === null) throw new RangeError(`order ${order.id} has lost its quote ${order.quoteId}`);
  const booked = await readSettledOrder(q, { owner: order.owner, nonce: quote.nonce });
  const lostFrom = booked === null ? null : await readLostFrom(q);
  // If the chain no longer has the block of the fill, the state is open until the operator reconciles.
  const settled = booked === null || (lostFrom !== null && booked.blockNumber >= lostFrom) ? null : booked;
  const outcome = settled === null ? await endOf(q, order.id) : null;
  const status = settled === null ? (outcome?.status ?? 'pending') : 'filled';
  return { quote, settled, outcome, isLost: booked !== null && settled === null, status };
}

/** How it ended unfilled: cancelled by its owner, or ended by the executor. */
async function endOf(q: Queryable, orderId: string): Promise<Pick<SwapOutcome, 'status' | 'code' | 'message'> | null> {
  return (await isCancelled(q, orderId)) ? CANCELLED : readOutcome(q, orderId);
}

const FILL_LOST = {
  code: 'FILL_LOST',
  message: 'It was filled in a block that the chain has taken back',
} as const;

const CANCELLED = {
  status: 'failed',
  code: 'CANCELLED',
  message: 'The owner took it back before anything was sent',
} as const;

/** The status of an order as of one state of the database. */
export async function orderStatus(db: Db, order: SwapOrder): Promise<OrderStatus> {
  return readTx(db, async (tx) => (await stateOf(tx, order)).status);
}

/** GET /api/v1/orders/{orderId}. */
export function orderHandler(deps: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const id = ctx.params['orderId'] ?? '';
    // An impossible id is refused before any query, because PostgreSQL rejects some texts with an error.
    if (!ORDER_ID.test(id)) throw notFound(`Unknown order: ${id.slice(0, 64)}`);
    ctx.body = await readTx(deps.db, async (tx) => {
      const order = await readOrder(tx, id);
      if (order === null) throw notFound(`Unknown order: ${id.slice(0, 64)}`);
      return answerOf(deps, tx, order);
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

/** GET /api/v1/orders?owner=: an owner's orders, newest first. They are public, like fills on the chain. */
export function ordersHandler(deps: SwapDeps): RouterMiddleware {
  return async (ctx) => {
    const { owner, limit, cursor = null } = parseAs(listQuerySchema, ctx.query);
    ctx.body = await readTx(deps.db, async (tx) => {
      // One more than asked for tells whether there is more.
      const found = await readOrdersOf(tx, owner, cursor, limit + 1);
      const shown = found.slice(0, limit);
      const last = found.length > limit ? shown.at(-1) : undefined;
      const orders = [];
      for (const order of shown) orders.push(await answerOf(deps, tx, order));
      return { orders, next: last === undefined ? null : `${last.createdMs}_${last.id}` };
    });
  };
}

/** An owner's newest orders, as `GET /api/v1/orders` begins with them. */
export async function newestOrders(deps: OrderDeps, owner: Address): Promise<object[]> {
  return readTx(deps.db, async (tx) => {
    const answers: object[] = [];
    for (const order of await readOrdersOf(tx, owner, null, LIST_LIMIT)) answers.push(await answerOf(deps, tx, order));
    return answers;
  });
}

async function answerOf(deps: OrderDeps, q: Queryable, order: SwapOrder) {
  const { quote, settled, outcome, isLost, status } = await stateOf(q, order);
  const attempts = await readAttempts(q, order.id);
  return {
    orderId: order.id,
    quoteId: order.quoteId,
    clientOrderId: order.clientOrderId,
    status,
    sellToken: quote.sellToken,
    buyToken: quote.buyToken,
    kind: quote.kind,
    orderClass: quote.isLimit ? 'limit' : 'market',
    sellAmount: quote.sellUnits.toString(),
    buyAmount: quote.buyUnits.toString(),
    minBuyAmount: quote.minBuyUnits.toString(),
    validTo: quote.validToSec,
    executedSellAmount: (settled?.amountInUnits ?? 0n).toString(),
    executedBuyAmount: (settled?.amountOutUnits ?? 0n).toString(),
    ...partnerOf(quote, settled?.partner?.amountUnits ?? null),
    txHash: settled?.txHash ?? null,
    explorerUrl: settled === null ? null : explorerLink(deps, settled.txHash),
    route: routeAnswer(decodeRoute(quote.route), quote),
    priceImpactBps: impactIn(quote.route),
    makers: settled === null ? [] : await makersOf(deps, q, settled),
    reason: status === 'filled' ? null : isLost && outcome === null ? FILL_LOST : reasonOf(outcome, attempts),
    attempts: await Promise.all(attempts.map((attempt) => attemptOf(q, attempt))),
  };
}

const explorerLink = ({ explorerUrl = null }: OrderDeps, txHash: string): string | null =>
  explorerUrl === null ? null : `${explorerUrl.replace(/\/+$/, '')}/tx/${txHash}`;

/** The part of an order that our curve filled, by its makers; nothing for one that went to pools alone. */
async function makersOf({ markets }: OrderDeps, q: Queryable, settled: SettledOrderRow) {
  const fills = await readFillsOfOrder(q, settled);
  return fills.map(({ market, fillSeq, makers }) => {
    const pair = markets()[market]?.pair ?? '';
    return {
      pair,
      fillSeq,
      decomposition: `/v0/fills/${fillSeq}/decomposition?pair=${encodeURIComponent(pair)}`,
      legs: makers.map(({ maker, baseUnits, quoteUnits }) => ({
        maker,
        baseAmount: baseUnits.toString(),
        quoteAmount: quoteUnits.toString(),
      })),
    };
  });
}

/** Why it ended; while it is pending, why the newest attempt was not sent. */
function reasonOf(outcome: SwapOrderState['outcome'], attempts: readonly SwapAttempt[]) {
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
