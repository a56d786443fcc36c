import type { CancelByCloidAction } from '../../../core/wire/types.js';
import { createDraft } from '../draft.js';
import type { ActionHandler } from '../types.js';
import { cancelEntries } from './cancel.js';

/** Cancels by client order id, in any letter case. The reply has the type of a cancel. */
export const cancelByCloid: ActionHandler<CancelByCloidAction> = (action, maker, view) => {
  const draft = createDraft(view, maker);
  const entries = action.cancels.map(({ asset, cloid }) => ({
    asset,
    find: () => draft.orderByCloid(cloid.toLowerCase()),
  }));
  return cancelEntries(entries, draft, view);
};
