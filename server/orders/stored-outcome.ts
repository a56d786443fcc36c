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
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

interface Known {
  markets: readonly Market[];
  /** The client order id of an order; undefined of one that is not remembered. */
  cloidOf(oid: number): string | null | undefined;
}

/**
 * The reply to an action whose nonce the row used up, or null when the row is of another action, or does not tell. Why something was refused is not
 * stored: it is refused as `refused_before`.
 */
export function storedReply(action: AdmittedAction, row: OrderLogRow, known: Known): ExchangeReply | null {
  if (row.kind !== action.type) return null;
  const { effects } = row;
  if (action.type === 'noop') return DONE;
  if (effects.length === 0) return refuse(REFUSALS.refusedBefore());
  switch (action.type) {
    case 'order':
      return ordersOf(action.orders, effects, known);
    case 'batchModify':
      return ordersOf(
        action.modifies.map(({ order }) => order),
        effects,
        known,
      );
    case 'modify':
      return ordersOf([action.order], effects, known) === null ? null : DONE;
    case 'cancel':
      return cancelsOf(
        action.cancels.map(({ o }) => o),
        effects,
        (oid) => oid,
      );
    case 'cancelByCloid':
      return cancelsOf(
        action.cancels.map(({ cloid }) => cloid.toLowerCase()),
        effects,
        known.cloidOf,
      );
    case 'scheduleCancel':
      return effects.some((effect) => effect.type === 'schedule' && effect.timeMs === (action.time ?? null))
        ? DONE
        : null;
    case 'approveAgent':
      return effects.some((effect) => effect.type === 'agent' && isOf(action, effect)) ? DONE : null;
    default:
      return null;
  }
}

function isOf(
  { agentAddress, agentName }: Extract<AdmittedAction, { type: 'approveAgent' }>,
  { agent, name, validUntilMs }: Extract<OrderEffect, { type: 'agent' }>,
): boolean {
  const isSameName = agentName === name || agentName === `${name} valid_until ${validUntilMs}`.trimStart();
  return isSameName && agentAddress === (agent ?? NO_ADDRESS);
}

const opens = (effects: readonly OrderEffect[]): Open[] => effects.filter((effect) => effect.type === 'open');

/** Entries are judged in their order, and so are the orders that they opened. Without an order that was opened the row is of another action. */
function ordersOf(
  entries: readonly WireOrder[],
  effects: readonly OrderEffect[],
  { markets }: Known,
): ExchangeReply | null {
  const left = opens(effects);
  if (left.length === 0) return null;
  const statuses = entries.map(
    (entry): EntryStatus => placed(entry, left, markets) ?? { error: REFUSALS.refusedBefore() },
  );
  // An order that no entry asked for.
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

/** Which of the names were those of orders that the row closed; null when it closed another one. */
function cancelsOf<N>(
  names: readonly N[],
  effects: readonly OrderEffect[],
  nameOf: (oid: number) => N | null | undefined,
): ExchangeReply | null {
  const closed = effects.flatMap((effect) => (effect.type === 'close' ? [nameOf(effect.oid)] : []));
  const left = new Set(closed);
  const statuses = names.map((name): EntryStatus =>
    left.delete(name) ? 'success' : { error: REFUSALS.refusedBefore() },
  );
  return left.size > 0 ? null : { status: 'ok', response: { type: 'cancel', data: { statuses } } };
}
