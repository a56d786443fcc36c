import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import { readTx } from '../../ledger/db/db.js';
import type { SettledOrderRow } from '../../ledger/chain/settled-orders.js';
import { readOrderFacts, type OrderFacts } from '../../ledger/swaps/order-facts.js';
import { readOrder, type SwapOrder, type SwapOutcome } from '../../ledger/swaps/swap-log.js';
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

/** How it ended unfilled: cancelled by its owner, or ended by the executor. */
type End = Pick<SwapOutcome, 'status' | 'code' | 'message'>;

interface SwapOrderState {
  settled: SettledOrderRow | null;
  end: End | null;
  status: OrderStatus;
}

/**
 * Filled if a durable generation has the settler's event, whatever else is stored; else as the executor ended it; else pending. If the chain no
 * longer has the block of the fill, the state is open until the operator reconciles.
 */
function stateOf({ booked, isLost, isCancelled, outcome }: OrderFacts): SwapOrderState {
  if (booked !== null && !isLost) return { settled: booked, end: null, status: 'filled' };
  const end = isCancelled ? CANCELLED : outcome;
  return { settled: null, end, status: end?.status ?? 'pending' };
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

async function factsOf(q: Queryable, order: SwapOrder): Promise<OrderFacts> {
  const [facts] = await readOrderFacts(q, [order]);
  return facts!;
}

/** The status of an order as of one state of the database. */
export async function orderStatus(db: Db, order: SwapOrder): Promise<OrderStatus> {
  return readTx(db, async (tx) => stateOf(await factsOf(tx, order)).status);
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
      return answerOf(deps, await factsOf(tx, order));
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
      const orders = (await readOrderFacts(tx, shown)).map((facts) => answerOf(deps, facts));
      return { orders, next: last === undefined ? null : `${last.createdMs}_${last.id}` };
    });
  };
}

/** An owner's newest orders, as `GET /api/v1/orders` begins with them. */
export async function newestOrders(deps: OrderDeps, owner: Address): Promise<object[]> {
  return readTx(deps.db, async (tx) => {
    const facts = await readOrderFacts(tx, await readOrdersOf(tx, owner, null, LIST_LIMIT));
    return facts.map((one) => answerOf(deps, one));
  });
}

function answerOf(deps: OrderDeps, facts: OrderFacts) {
  const { order, quote, attempts, isLost } = facts;
  const { settled, end, status } = stateOf(facts);
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
    makers: settled === null ? [] : makersOf(deps, facts),
    reason: status === 'filled' ? null : isLost && end === null ? FILL_LOST : reasonOf(end, attempts),
    attempts: attempts.map(attemptOf),
  };
}

const explorerLink = ({ explorerUrl = null }: OrderDeps, txHash: string): string | null =>
  explorerUrl === null ? null : `${explorerUrl.replace(/\/+$/, '')}/tx/${txHash}`;

/** The part of an order that our curve filled, by its makers; nothing for one that went to pools alone. */
function makersOf({ markets }: OrderDeps, { fills }: OrderFacts) {
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
function reasonOf(end: End | null, attempts: OrderFacts['attempts']) {
  const newest = attempts.at(-1);
  const source = end ?? (newest?.result === 'refused' ? newest : null);
  return source === null ? null : { code: source.code, message: source.message };
}

function attemptOf(attempt: OrderFacts['attempts'][number]) {
  const at = new Date(attempt.timeMs).toISOString();
  if (attempt.result === 'refused') return { at, result: attempt.result, code: attempt.code, txHashes: [] };
  return { at, result: attempt.result, code: null, txHashes: attempt.txHashes };
}
