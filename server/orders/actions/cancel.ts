import type { OpenOrder } from '../../../core/types.js';
import type { CancelAction, CancelByCloidAction } from '../../../core/wire/types.js';
import { createDraft, type Draft } from '../draft.js';
import { marketOf, refuseBatch } from './order.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionHandler, ActionOutcome, AdmissionView, EntryStatus } from '../types.js';

/** Cancels by order id. An id of another maker or another market is not found. */
export const cancel: ActionHandler<CancelAction> = (action, maker, view) => {
  const draft = createDraft(view, maker);
  const entries = action.cancels.map(({ a, o }) => ({ asset: a, find: () => draft.order(o) }));
  return cancelEntries(entries, draft, view);
};

/** One status per entry; `find` is asked when the entry's turn comes, so that a repeated id is found once. */
function cancelEntries(
  entries: readonly { asset: number; find: () => OpenOrder | undefined }[],
  draft: Draft,
  view: AdmissionView,
): ActionOutcome {
  const refused = refuseBatch(entries);
  if (refused !== null) return { effects: [], reply: refuse(refused) };
  const statuses = entries.map(({ asset, find }): EntryStatus => {
    const order = find();
    if (order === undefined || order.market !== marketOf(view.markets, asset)?.index) {
      return { error: REFUSALS.orderNotFound(asset) };
    }
    draft.close(order.oid);
    return 'success';
  });
  return { effects: draft.effects, reply: { status: 'ok', response: { type: 'cancel', data: { statuses } } } };
}

/** Cancels by client order id, in any letter case. The reply has the type of a cancel. */
export const cancelByCloid: ActionHandler<CancelByCloidAction> = (action, maker, view) => {
  const draft = createDraft(view, maker);
  const entries = action.cancels.map(({ asset, cloid }) => ({
    asset,
    find: () => draft.orderByCloid(cloid.toLowerCase()),
  }));
  return cancelEntries(entries, draft, view);
};
