import type { NoopAction } from '../../../core/wire/types.js';
import type { ActionHandler } from '../types.js';

/** Uses up a nonce and nothing else: the way to invalidate a request that is still under way. */
export const noop: ActionHandler<NoopAction> = () => ({
  effects: [],
  reply: { status: 'ok', response: { type: 'default' } },
});
