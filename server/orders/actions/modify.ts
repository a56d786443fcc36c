import type { Address } from '../../../core/types.js';
import type { BatchModifyAction, ModifyAction, WireOrder } from '../../../core/wire/types.js';
import { createDraft, type Draft } from '../draft.js';
import { marketOf, placeOrder, refuseBatch } from './order.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionHandler, AdmissionView, EntryStatus } from '../types.js';

interface Change {
  oid: number | string;
  order: WireOrder;
}

/** Replaces one order. The reply has no new id; a failure refuses the request as a whole and leaves the original open. */
export const modify: ActionHandler<ModifyAction> = (action, maker, view) => {
  const draft = createDraft(view, maker);
  const status = replaceOrder(action, action.a === true, maker, draft, view);
  if (typeof status === 'object' && 'error' in status) return { effects: [], reply: refuse(status.error) };
  return { effects: draft.effects, reply: { status: 'ok', response: { type: 'default' } } };
};

/** Replaces orders: one status per entry, judged in order, each on its own. */
export const batchModify: ActionHandler<BatchModifyAction> = (action, maker, view) => {
  const refused = refuseBatch(action.modifies);
  if (refused !== null) return { effects: [], reply: refuse(refused) };
  const draft = createDraft(view, maker);
  const statuses = action.modifies.map((change) => replaceOrder(change, action.a === true, maker, draft, view));
  return { effects: draft.effects, reply: { status: 'ok', response: { type: 'order', data: { statuses } } } };
};

/**
 * Replaces an open order by a new one; the checks of the new one ignore the old one. Unless `alwaysPlace`, the original must be open and a
 * Gtc replacement becomes an Alo one. An order can't move to another market. A refused replacement changes nothing.
 */
function replaceOrder(
  { oid, order }: Change,
  alwaysPlace: boolean,
  maker: Address,
  draft: Draft,
  view: AdmissionView,
): EntryStatus {
  const original = typeof oid === 'number' ? draft.order(oid) : draft.orderByCloid(oid.toLowerCase());
  if (original === undefined) {
    return alwaysPlace ? placeOrder(order, maker, draft, view) : { error: REFUSALS.notModifiable(order.a) };
  }
  const market = marketOf(view.markets, order.a);
  if (market === undefined) return { error: REFUSALS.unknownAsset(order.a) };
  if (original.market !== market.index) return { error: REFUSALS.notModifiable(order.a) };
  const undo = draft.close(original.oid, 'replaced');
  const status = placeOrder(order, maker, draft, view, { postOnly: !alwaysPlace });
  if (typeof status === 'object' && 'error' in status) undo();
  return status;
}
