import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { Address, Hex } from '../../core/types.js';
import {
  MOST_TURNS,
  acceptOrder,
  countPending,
  readClientOrder,
  readOrderOfQuote,
  type SwapOrder,
} from '../../ledger/swaps/swap-log.js';
import { readQuote, type SwapQuote } from '../../ledger/swaps/swap-quotes.js';
import {
  countLimits,
  countUnproven,
  readPendingSales,
  readProven,
  type PendingSale,
} from '../../ledger/swaps/swap-wallets.js';
import type { Queryable } from '../../ledger/types.js';
import { codeAt } from '../../liquidity/eth.js';
import type { Permits } from '../../liquidity/permits.js';
import { ApiError, badRequest } from '../errors.js';
import { broughtPermit } from './approval.js';
import { readBody } from './body.js';
import type { SwapDeps } from './deps.js';
import { checkFunds, readOwner, type OwnerState } from './funds.js';
import { orderStatus } from './order.js';
import { typedDataOf } from './quote-store.js';
import { DEFAULT_CHECK_GAS, acceptedSignature, digestOf } from './signature.js';

/**
 * Pending limit orders, which are looked at in turns, so that none waits for its turn for long: of everybody; of all owners without a fill
 * or a swap on the chain together, since new keys are free; and of one such owner.
 */
const MAX_LIMITS = { all: 2_000, unproven: 500, ofUnproven: 2 } as const;

/**
 * The other pending orders: of everybody, and of all owners without a fill or a swap on the chain together. Beyond what takes turns an order would never
 * be tried; the room below is for submissions at the same moment, and for fills that the chain takes back.
 */
const MAX_ORDERS = { all: MOST_TURNS - 1_000, unproven: MOST_TURNS - 2_500 } as const;

/** Longest signature in hex digits; contract accounts may need more than a key's 130. */
const MAX_SIGNATURE_DIGITS = 16_384;

export const signatureSchema = z
  .string()
  .regex(/^0x([0-9a-fA-F]{2})+$/, 'must be hex of whole bytes')
  .max(2 + MAX_SIGNATURE_DIGITS)
  .transform((value) => value.toLowerCase() as Hex);

export const submissionSchema = z.object({
  // PostgreSQL rejects some texts with an error, which no id of a quote has.
  quoteId: z.string().regex(/^[\x21-\x7e]{1,64}$/, 'must be the id of a quote'),
  signature: signatureSchema,
  clientOrderId: z
    .string()
    .regex(/^[A-Za-z0-9:_-]{1,128}$/, 'must be 1 to 128 letters, digits, and the characters : _ -')
    .optional(),
  approvalSignature: signatureSchema.optional(),
});

/**
 * POST /api/v1/orders: takes the signature of a quote. A request with a client order id that the owner used before answers with that order,
 * whatever else it contains, but only after the signature was checked, so that no other client learns of the order. One quote makes one
 * order.
 */
export function submitHandler(deps: SwapDeps, permits: Permits): RouterMiddleware {
  return async (ctx) => {
    const { quoteId, signature, clientOrderId = null, approvalSignature } = await readBody(ctx.req, submissionSchema);
    const quote = await readQuote(deps.db.knex, quoteId);
    if (quote === null) throw badRequest('quoteId: unknown, or expired long ago; get a fresh quote');
    const earlier = clientOrderId === null ? null : await readClientOrder(deps.db.knex, quote.owner, clientOrderId);
    if (earlier !== null) await proveOwner(deps, quote, signature, earlier);
    const { order, isNew } =
      earlier === null
        ? await accept(deps, permits, quote, { signature, clientOrderId, approvalSignature })
        : { order: earlier, isNew: false };
    // A new order is pending.
    const status = isNew ? 'pending' : await orderStatus(deps.db, order);
    ctx.body = { orderId: order.id, quoteId: order.quoteId, status };
  };
}

/** Throws 400 unless the owner signed the quote: the signature equals the one accepted before, or is valid now. */
async function proveOwner(deps: SwapDeps, quote: SwapQuote, signature: Hex, known: SwapOrder): Promise<void> {
  if (known.quoteId === quote.id && known.signature === signature) return;
  const code = await codeAt(deps.eth, quote.owner);
  if ((await accepted(deps, quote, signature, code)) === null) throw invalidSignature(quote);
}

function accepted(deps: SwapDeps, quote: SwapQuote, signature: Hex, code: Hex): Promise<Hex | null> {
  const { eth, permit2, maxGas = DEFAULT_CHECK_GAS } = deps;
  const digest = digestOf(typedDataOf(quote));
  return acceptedSignature(eth, { owner: quote.owner, code }, digest, signature, { maxGas, permit2 });
}

const invalidSignature = ({ owner }: SwapQuote): ApiError =>
  badRequest(`Invalid signature: it is not that of ${owner} over permit2.typedData of this quote`);

interface Submission {
  signature: Hex;
  clientOrderId: string | null;
  approvalSignature: Hex | undefined;
}

async function accept(
  deps: SwapDeps,
  permits: Permits,
  quote: SwapQuote,
  { signature, clientOrderId, approvalSignature }: Submission,
): Promise<{ order: SwapOrder; isNew: boolean }> {
  const used = await readOrderOfQuote(deps.db.knex, quote.id);
  if (used !== null) {
    await proveOwner(deps, quote, signature, used);
    return { order: usedQuote(used, clientOrderId), isNew: false };
  }
  checkFresh(deps, quote);
  await refuseWhileFull(deps.db.knex, quote);
  const permit = approvalSignature === undefined ? null : broughtPermit(deps, quote, approvalSignature);
  const nowSec = Math.floor(deps.nowMs() / 1_000);
  const others = await readPendingSales(deps.db.knex, quote.owner, quote.sellToken, nowSec);
  let owner = await readOwner(deps, quote, others);
  const hasCode = owner.code !== '0x';
  // An owner's code runs last; a key's signature, which is cheap to check, is checked first.
  if (hasCode) checkFunds(deps, quote, owner, others, permit !== null);
  const taken = await accepted(deps, quote, signature, owner.code);
  if (taken === null) throw invalidSignature(quote);
  if (permit !== null) owner = await withPermit(permits, quote, owner, permit);
  if (!hasCode || permit !== null) checkFunds(deps, quote, owner, others);
  checkFresh(deps, quote);
  const order = {
    id: crypto.randomUUID(),
    quoteId: quote.id,
    owner: quote.owner,
    signature: taken,
    clientOrderId,
    createdMs: deps.nowMs(),
  };
  // Again, since others of the same owner may have been accepted meanwhile.
  const check = async (pending: readonly PendingSale[], tx: Queryable): Promise<void> => {
    await refuseWhileFull(tx, quote);
    checkFunds(deps, quote, owner, pending);
  };
  const acceptance = await acceptOrder(deps.db, order, quote, check, permit);
  if (acceptance.result === 'quoteUsed') return { order: usedQuote(acceptance.order, clientOrderId), isNew: false };
  const isNew = acceptance.result === 'accepted';
  if (isNew) deps.onOrder(acceptance.order);
  return { order: acceptance.order, isNew };
}

const refuseWhileFull = (q: Queryable, { isLimit, owner }: SwapQuote): Promise<void> =>
  isLimit ? refuseBeyondLimits(q, owner) : refuseBeyondTurns(q, owner);

/** Throws 503 while as many orders are pending as may be, or for an unproven owner, as many as those may have together. */
async function refuseBeyondTurns(q: Queryable, owner: Address): Promise<void> {
  const { count } = await countPending(q);
  // Who has traded, and of whom the orders are, need not be read while there is room for each of them.
  if (count < MAX_ORDERS.unproven) return;
  const isFull = count >= MAX_ORDERS.all;
  if (!isFull && (await readProven(q, [owner])).has(owner)) return;
  if (!isFull && (await countUnproven(q)) < MAX_ORDERS.unproven) return;
  const whose = isFull ? '' : ' of accounts that have not traded here';
  throw new ApiError(
    503,
    'TOO_MANY_ORDERS',
    `There are as many pending orders${whose} as there may be; try again later`,
  );
}

/** Throws 503 while there are as many limit orders as there may be, and 400 for an unproven owner that has its share. */
async function refuseBeyondLimits(q: Queryable, owner: Address): Promise<void> {
  const { all, unproven, isProven, own } = await countLimits(q, owner);
  if (!isProven && own >= MAX_LIMITS.ofUnproven) {
    const message = `Too many limit orders: ${owner} has not traded here, and may have ${MAX_LIMITS.ofUnproven} at a time`;
    throw badRequest(message);
  }
  const isFull = all >= MAX_LIMITS.all || (!isProven && unproven >= MAX_LIMITS.unproven);
  if (!isFull) return;
  const whose = all >= MAX_LIMITS.all ? '' : ' of accounts that have not traded here';
  throw new ApiError(
    503,
    'TOO_MANY_LIMIT_ORDERS',
    `There are as many limit orders${whose} as there may be; try again later`,
  );
}

/**
 * The owner with the allowance that a simulation of the permit leaves. Throws 400 when the token refuses the permit and the allowance does
 * not suffice without it.
 */
async function withPermit(permits: Permits, quote: SwapQuote, owner: OwnerState, permit: Hex): Promise<OwnerState> {
  const { sellToken, sellUnits } = quote;
  const allowanceUnits = (await permits.allowanceAfter(sellToken, owner.owner, permit)) ?? owner.allowanceUnits;
  // The permit may have been submitted by another party already; then the allowance is there.
  if (allowanceUnits < sellUnits && allowanceUnits <= owner.allowanceUnits) {
    throw badRequest(`approvalSignature: ${sellToken} does not take it; sign approval.typedData of this quote`);
  }
  return { ...owner, allowanceUnits };
}

/** The order itself when this is a retry that a concurrent request overtook; else a refusal. */
function usedQuote(order: SwapOrder, clientOrderId: string | null): SwapOrder {
  if (clientOrderId !== null && order.clientOrderId === clientOrderId) return order;
  throw badRequest(`The quote was used already, by order ${order.id}; get a fresh quote`);
}

/** Uses the later of our clock and the chain's, so that a slow clock does not accept expired quotes. */
function checkFresh({ nowMs, headMs }: SwapDeps, quote: SwapQuote): void {
  if (Math.max(nowMs(), headMs()) < quote.expiresMs) return;
  throw badRequest(`The quote expired at ${new Date(quote.expiresMs).toISOString()}; get a fresh quote and sign it`);
}
