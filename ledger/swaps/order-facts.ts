/** What the logs know of signed orders, read for many of them at once: with the same few statements, however many there are. */
import type { Hex } from '../../core/types.js';
import { readLostFrom } from '../chain/halts.js';
import { readFillsOfOrders, readSettledOrders, type OrderFill, type SettledOrderRow } from '../chain/settled-orders.js';
import { groupBy } from '../db/lists.js';
import type { Stored } from '../db/tables.js';
import type { Queryable } from '../types.js';
import { toAttempt, toOutcome, type SwapAttempt, type SwapOrder, type SwapOutcome } from './swap-log.js';
import { toQuote, type SwapQuote } from './swap-quotes.js';

/** An attempt with the hashes of its transactions, the oldest first. */
type KnownAttempt = SwapAttempt & { txHashes: Hex[] };

export interface OrderFacts {
  order: SwapOrder;
  quote: SwapQuote;
  /** Its fill in a durable generation. */
  booked: SettledOrderRow | null;
  /** The chain no longer has the block of the fill, and the operator has not reconciled the ledger yet. */
  isLost: boolean;
  /** What our curves gave for a fill that is not lost. */
  fills: OrderFill[];
  /** Of an order without a fill, or with a lost one. */
  isCancelled: boolean;
  outcome: SwapOutcome | null;
  attempts: KnownAttempt[];
}

/** Facts of at most a page of orders, in their order. Throws RangeError for an order without its quote. */
export async function readOrderFacts(q: Queryable, orders: readonly SwapOrder[]): Promise<OrderFacts[]> {
  if (orders.length === 0) return [];
  const quotes = await quotesOf(q, orders);
  const found = await readSettledOrders(q, [...quotes.values()]);
  const lostFrom = found.length === 0 ? null : await readLostFrom(q);
  const bookedOf = new Map(found.map((fill) => [keyOf(fill), fill]));
  const isLost = ({ blockNumber }: SettledOrderRow): boolean => lostFrom !== null && blockNumber >= lostFrom;
  const fillsOf = await readFillsOfOrders(
    q,
    found.filter((fill) => !isLost(fill)),
  );
  const facts = orders.map((order): OrderFacts => {
    const quote = quotes.get(order.quoteId);
    if (quote === undefined) throw new RangeError(`order ${order.id} has lost its quote ${order.quoteId}`);
    const booked = bookedOf.get(keyOf(quote)) ?? null;
    const fills = booked === null ? [] : (fillsOf.get(booked) ?? []);
    const isGone = booked !== null && isLost(booked);
    return { order, quote, booked, isLost: isGone, fills, isCancelled: false, outcome: null, attempts: [] };
  });
  await addEnds(
    q,
    facts.filter((fact) => fact.booked === null || fact.isLost),
  );
  await addAttempts(q, facts);
  return facts;
}

const keyOf = ({ owner, nonce }: Pick<SwapQuote, 'owner' | 'nonce'>): string => `${owner}:${nonce}`;
const idsOf = (facts: readonly OrderFacts[]): string[] => facts.map(({ order }) => order.id);

async function quotesOf(q: Queryable, orders: readonly SwapOrder[]): Promise<Map<string, SwapQuote>> {
  const ids = orders.map(({ quoteId }) => quoteId);
  const rows = await q('swap_quotes').whereIn('id', ids).select<Stored<'swap_quotes'>[]>();
  return new Map(rows.map((row) => [row.id, toQuote(row)]));
}

/** How they ended unfilled. */
async function addEnds(q: Queryable, facts: readonly OrderFacts[]): Promise<void> {
  if (facts.length === 0) return;
  const ids = idsOf(facts);
  const cancelled = await q('swap_cancellations').whereIn('order_id', ids).select<{ order_id: string }[]>('order_id');
  const ended = await q('swap_outcomes').whereIn('order_id', ids).select<Stored<'swap_outcomes'>[]>();
  const cancelledIds = new Set(cancelled.map(({ order_id }) => order_id));
  const outcomes = new Map(ended.map((row) => [row.order_id, toOutcome(row)]));
  for (const fact of facts) {
    fact.isCancelled = cancelledIds.has(fact.order.id);
    fact.outcome = outcomes.get(fact.order.id) ?? null;
  }
}

async function addAttempts(q: Queryable, facts: readonly OrderFacts[]): Promise<void> {
  const rows = await q('swap_attempts')
    .whereIn('order_id', idsOf(facts))
    .orderBy(['order_id', 'attempt_no'])
    .select<Stored<'swap_attempts'>[]>();
  const keys = rows.flatMap(({ tx_key }) => (tx_key === null ? [] : [tx_key]));
  const signed =
    keys.length === 0
      ? []
      : await q('outbox')
          .whereIn('tx_key', keys)
          .orderBy(['sent_ms', 'hash'])
          .select<Pick<Stored<'outbox'>, 'tx_key' | 'hash'>[]>('tx_key', 'hash');
  const hashesOf = groupBy(signed, ({ tx_key }) => tx_key);
  const attemptsOf = groupBy(rows, ({ order_id }) => order_id);
  for (const fact of facts) {
    fact.attempts = (attemptsOf.get(fact.order.id) ?? []).map((row) => ({
      ...toAttempt(row),
      txHashes: (hashesOf.get(row.tx_key ?? '') ?? []).map(({ hash }) => hash),
    }));
  }
}
