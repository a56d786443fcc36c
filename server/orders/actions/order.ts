import type { OrderAction } from '../../../core/wire/types.js';
import { createDraft } from '../draft.js';
import { placeOrder } from '../place.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionHandler } from '../types.js';
import { refuseBatch } from './batch.js';

/** Places resting limit orders: one status per entry, judged in order, each on its own. */
export const order: ActionHandler<OrderAction> = (action, maker, view) => {
  const refused = refuseAction(action);
  if (refused !== null) return { effects: [], reply: refuse(refused) };
  const draft = createDraft(view, maker);
  const statuses = action.orders.map((entry) => placeOrder(entry, maker, draft, view));
  return { effects: draft.effects, reply: { status: 'ok', response: { type: 'order', data: { statuses } } } };
};

/** A builder without a fee is what some clients always attach; it changes nothing. */
function refuseAction(action: OrderAction): string | null {
  if (action.grouping !== 'na') return REFUSALS.grouping();
  if (action.builder !== undefined && action.builder.f > 0) return REFUSALS.builderFee();
  return refuseBatch(action.orders);
}
