import type { OrderAction, WireOrder } from '../../../core/wire/types.js';
import { createDraft, type Draft, type NewOrder } from '../draft.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionHandler, AdmissionView, EntryStatus } from '../types.js';
import { formatUnits } from '../../../core/amounts.js';
import { MAX_PRICE_TICKS, priceToTicks, sizeToLots, ticksToPrice } from '../../../core/market.js';
import type { Address, Market } from '../../../core/types.js';
import { orderPayment } from '../../../core/book/maker-orders.js';
import { MAX_OPEN_ORDERS, SPOT_ASSET_BASE, MAX_BATCH_ENTRIES } from '../limits.js';

/** Places resting limit orders: one status per entry, judged in order, each on its own. */
export const order: ActionHandler<OrderAction> = (action, maker, view) => {
  const refused = refuseAction(action);
  if (refused !== null) return { effects: [], reply: refuse(refused) };
  const draft = createDraft(view, maker);
  const statuses = action.orders.map((entry) => placeOrder(entry, maker, draft, view));
  return { effects: draft.effects, reply: { status: 'ok', response: { type: 'order', data: { statuses } } } };
};

/** Some clients always attach a builder without a fee; it is ignored. */
function refuseAction(action: OrderAction): string | null {
  if (action.grouping !== 'na') return REFUSALS.grouping();
  if (action.builder !== undefined && action.builder.f > 0) return REFUSALS.builderFee();
  return refuseBatch(action.orders);
}

/** The market of an asset id, or undefined. */
export const marketOf = (markets: readonly Market[], asset: number): Market | undefined =>
  asset < SPOT_ASSET_BASE ? undefined : markets[asset - SPOT_ASSET_BASE];

/**
 * Judges one order entry and opens it in the draft, or says why not; a refused entry leaves the draft as it was. `postOnly` makes a
 * Gtc order an Alo one.
 */
export function placeOrder(
  entry: WireOrder,
  maker: Address,
  draft: Draft,
  view: AdmissionView,
  options: { postOnly: boolean } = { postOnly: false },
): EntryStatus {
  if (!view.readiness.ready) return { error: REFUSALS.notReady(view.readiness.reason ?? 'unknown') };
  const market = marketOf(view.markets, entry.a);
  if (market === undefined) return { error: REFUSALS.unknownAsset(entry.a) };
  if (view.delisted.has(market.index)) return { error: REFUSALS.delisted(entry.a) };
  if (view.quarantined.has(market.base.address) || view.quarantined.has(market.quote.address))
    return { error: REFUSALS.quarantined(entry.a) };
  const read = readOrder(entry, market);
  if (typeof read === 'string') return { error: read };
  const order: NewOrder = options.postOnly ? { ...read, tif: 'Alo' } : read;
  const error = refuseOrder(entry.a, order, market, maker, draft, view);
  if (error !== null) return { error };
  const oid = draft.open(order);
  return { resting: order.cloid === null ? { oid } : { oid, cloid: order.cloid } };
}

/** The order on the market's grid, or the reason why an entry of this kind, price or size can't rest. */
function readOrder(entry: WireOrder, market: Market): NewOrder | string {
  if ('trigger' in entry.t) return REFUSALS.trigger(entry.a);
  if (entry.r) return REFUSALS.reduceOnly();
  const { tif } = entry.t.limit;
  if (tif !== 'Gtc' && tif !== 'Alo') return REFUSALS.immediate(entry.a);
  const priceTicks = priceToTicks(market, entry.p);
  if (priceTicks === null) return REFUSALS.offTick(entry.a);
  if (priceTicks === 0n || priceTicks > MAX_PRICE_TICKS) return REFUSALS.badPrice();
  const sizeLots = sizeToLots(market, entry.s);
  if (sizeLots === null) return REFUSALS.offLot();
  if (sizeLots === 0n) return REFUSALS.zeroSize();
  const cloid = entry.c === undefined ? null : entry.c.toLowerCase();
  return { market: market.index, side: entry.b ? 'bid' : 'ask', priceTicks, sizeLots, tif, cloid };
}

/** Why the order may not rest next to the others, or null. */
function refuseOrder(
  asset: number,
  order: NewOrder,
  market: Market,
  maker: Address,
  draft: Draft,
  view: AdmissionView,
): string | null {
  const minUnits = view.minOrderUnits(market);
  // Whole lots at whole ticks: nothing to round.
  if (order.priceTicks * order.sizeLots * market.tickLotUnits < minUnits) {
    return REFUSALS.belowMinValue(formatUnits(minUnits, market.quote.decimals), market.quote.symbol, asset);
  }
  if (draft.openCount() >= MAX_OPEN_ORDERS) return REFUSALS.tooManyOpenOrders(asset);
  if (order.cloid !== null && draft.orderByCloid(order.cloid) !== undefined) return REFUSALS.duplicateCloid(asset);
  if (crosses(order, draft)) return REFUSALS.postOnly(bboText(market, draft), asset);
  const { token, units } = orderPayment(market, order);
  const exceeds = draft.exposureUnits(token) + units > view.available(maker, token);
  return exceeds ? REFUSALS.inventory(asset) : null;
}

/**
 * An order crosses when it reaches the best defended price of the other side (`defendedTicks`), also one of the same maker; an equal price
 * crosses.
 */
function crosses(order: NewOrder, draft: Draft): boolean {
  const opposite = draft.defendedTicks(order.market, order.side === 'ask' ? 'bid' : 'ask');
  if (opposite === null) return false;
  return order.side === 'ask' ? order.priceTicks <= opposite : order.priceTicks >= opposite;
}

/** `<bid>@<ask>` that are defended, 0 for an empty side. */
function bboText(market: Market, draft: Draft): string {
  const bid = ticksToPrice(market, draft.defendedTicks(market.index, 'bid') ?? 0n);
  return `${bid}@${ticksToPrice(market, draft.defendedTicks(market.index, 'ask') ?? 0n)}`;
}

/** Why a batch of this many entries is refused as a whole, or null. */
export function refuseBatch(entries: readonly unknown[]): string | null {
  if (entries.length === 0) return REFUSALS.emptyBatch();
  return entries.length > MAX_BATCH_ENTRIES ? REFUSALS.batchTooLarge() : null;
}

/** Lists of entries, whatever the type of the action. */
const LISTS = ['orders', 'cancels', 'modifies'] as const;

/** Whether a received action has more entries than allowed; checked before anything of it is read or hashed. */
export const isTooLong = (action: Readonly<Record<string, unknown>>): boolean =>
  LISTS.some((name) => {
    const list = action[name];
    return Array.isArray(list) && list.length > MAX_BATCH_ENTRIES;
  });
