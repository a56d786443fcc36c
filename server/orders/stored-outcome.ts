/** What was answered to an action, as far as its row in the order log tells. */
import { priceToTicks, sizeToLots } from '../../core/market.js';
import type { Market, OrderEffect, OrderLogRow } from '../../core/types.js';
import type { WireOrder } from '../../core/wire/types.js';
import type { AdmittedAction } from './actions/registry.js';
import { marketOf } from './actions/order.js';
import { REFUSALS, refuse } from './refusals.js';
import type { EntryStatus, ExchangeReply } from './types.js';

type Open = Extract<OrderEffect, { type: 'open' }>;

const DONE: ExchangeReply = { status: 'ok', response: { type: 'default' } };
const refused = (): ExchangeReply => refuse(REFUSALS.refusedBefore());

/**
 * The reply to an action whose nonce the row used up, or null when the row is of another action. Why something was refused is not stored: it
 * is refused as `refused_before`.
 */
export function storedReply(
  action: AdmittedAction,
  row: OrderLogRow,
  markets: readonly Market[],
): ExchangeReply | null {
  if (row.kind !== action.type) return null;
  const { effects } = row;
  switch (action.type) {
    case 'order':
      return statusesOf(action.orders, effects, (entry, left) => placed(entry, left, markets));
    case 'batchModify':
      return statusesOf(action.modifies, effects, ({ order }, left) => placed(order, left, markets));
    case 'modify':
      if (effects.length === 0) return refused();
      return placed(action.order, [...opens(effects)], markets) === null ? null : DONE;
    case 'cancel':
      return cancelsOf(
        action.cancels.map(({ o }) => o),
        effects,
        action.cancels.length,
      );
    case 'cancelByCloid':
      return cancelsOf(null, effects, action.cancels.length);
    case 'noop':
      return DONE;
    default:
      return effects.length === 0 ? refused() : DONE;
  }
}

const opens = (effects: readonly OrderEffect[]): Open[] => effects.filter((effect) => effect.type === 'open');

/** Entries are judged in their order, and so are the orders that they opened. Where none was opened, the request may have been refused as a whole. */
function statusesOf<E>(
  entries: readonly E[],
  effects: readonly OrderEffect[],
  find: (entry: E, left: Open[]) => EntryStatus | null,
): ExchangeReply | null {
  const left = opens(effects);
  if (left.length === 0) return refused();
  const statuses = entries.map((entry): EntryStatus => find(entry, left) ?? { error: REFUSALS.refusedBefore() });
  // An order that no entry asked for: the row is of another action.
  return left.length > 0 ? null : { status: 'ok', response: { type: 'order', data: { statuses } } };
}

/** Takes the next of the orders if it is the one that the entry asked for. */
function placed(entry: WireOrder, left: Open[], markets: readonly Market[]): EntryStatus | null {
  const [next] = left;
  const market = marketOf(markets, entry.a);
  if (next === undefined || market === undefined) return null;
  const cloid = entry.c === undefined ? null : entry.c.toLowerCase();
  const isSame =
    next.market === market.index &&
    next.side === (entry.b ? 'bid' : 'ask') &&
    next.cloid === cloid &&
    next.priceTicks === priceToTicks(market, entry.p) &&
    next.sizeLots === sizeToLots(market, entry.s);
  if (!isSame) return null;
  left.shift();
  return { resting: cloid === null ? { oid: next.oid } : { oid: next.oid, cloid } };
}

/** By order ids. Which of several client order ids were found is not stored: then all of them or none must have been. */
function cancelsOf(
  oids: readonly number[] | null,
  effects: readonly OrderEffect[],
  count: number,
): ExchangeReply | null {
  const closed = new Set(effects.flatMap((effect) => (effect.type === 'close' ? [effect.oid] : [])));
  if (closed.size === 0) return refused();
  const reply = (statuses: EntryStatus[]): ExchangeReply => ({
    status: 'ok',
    response: { type: 'cancel', data: { statuses } },
  });
  if (oids === null) return closed.size === count ? reply(Array<EntryStatus>(count).fill('success')) : null;
  const statuses = oids.map((oid): EntryStatus =>
    closed.delete(oid) ? 'success' : { error: REFUSALS.refusedBefore() },
  );
  return closed.size > 0 ? null : reply(statuses);
}
