/** What was answered to an action, as far as its row in the order log tells. */
import { priceToTicks, sizeToLots } from '../../core/market.js';
import type { Market, OrderEffect, OrderLogRow } from '../../core/types.js';
import type { WireOrder } from '../../core/wire/types.js';
import type { AdmittedAction } from './actions/registry.js';
import { marketOf } from './actions/order.js';
import { REFUSALS, refuse } from './refusals.js';
import type { EntryStatus, ExchangeReply } from './types.js';

type Change = Extract<AdmittedAction, { type: 'batchModify' }>['modifies'][number];
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
      return replacementsOf(action.modifies, action.a === true, effects, known);
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

/**
 * The same for entries that replace orders: each order that was opened follows the one that it replaced, if any. One that replaced none has
 * no name in the row, so the row does not tell which entry it was of when several asked for the same.
 */
function replacementsOf(
  entries: readonly Change[],
  alwaysPlace: boolean,
  effects: readonly OrderEffect[],
  known: Known,
): ExchangeReply | null {
  const left = effects.flatMap((effect, index) => {
    if (effect.type !== 'open') return [];
    const before = effects[index - 1];
    const replaced = before?.type === 'close' && before.reason === 'replaced' ? before.oid : null;
    return [{ open: effect, replaced }];
  });
  if (left.length === 0) return null;
  const isAmbiguous = left.some(
    ({ open, replaced }) =>
      replaced === null && entries.filter(({ order }) => isOrderOf(order, open, known.markets)).length > 1,
  );
  if (isAmbiguous) return null;
  const statuses = entries.map(({ oid, order }): EntryStatus => {
    const [next] = left;
    const isNext =
      next !== undefined &&
      isOrderOf(order, next.open, known.markets) &&
      (next.replaced === null ? alwaysPlace : isNameOf(oid, next.replaced, known));
    if (!isNext) return { error: REFUSALS.refusedBefore() };
    left.shift();
    return restingOf(next.open);
  });
  return left.length > 0 ? null : { status: 'ok', response: { type: 'order', data: { statuses } } };
}

const isNameOf = (name: number | string, oid: number, { cloidOf }: Known): boolean =>
  typeof name === 'number' ? name === oid : name.toLowerCase() === cloidOf(oid);

const restingOf = ({ oid, cloid }: Open): EntryStatus => ({ resting: cloid === null ? { oid } : { oid, cloid } });

/** Takes the next of the orders if it is the one that the entry asked for. */
function placed(entry: WireOrder, left: Open[], markets: readonly Market[]): EntryStatus | null {
  const [next] = left;
  if (next === undefined || !isOrderOf(entry, next, markets)) return null;
  left.shift();
  return restingOf(next);
}

/** Whether the entry asked for such an order. Of one that could not rest no order came. */
function isOrderOf(entry: WireOrder, open: Open, markets: readonly Market[]): boolean {
  const market = marketOf(markets, entry.a);
  if (market === undefined || entry.r || 'trigger' in entry.t) return false;
  return (
    (entry.t.limit.tif === 'Gtc' || entry.t.limit.tif === 'Alo') &&
    open.market === market.index &&
    open.side === (entry.b ? 'bid' : 'ask') &&
    open.cloid === (entry.c === undefined ? null : entry.c.toLowerCase()) &&
    open.priceTicks === priceToTicks(market, entry.p) &&
    open.sizeLots === sizeToLots(market, entry.s)
  );
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
