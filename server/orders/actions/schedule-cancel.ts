import type { ScheduleCancelAction } from '../../../core/wire/types.js';
import { MAX_TRIGGERS_PER_DAY, MIN_SCHEDULE_MS } from '../limits.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionHandler } from '../types.js';

/**
 * Arms the maker's scheduled cancel, replacing an earlier one, or clears it. Once ten have triggered on a UTC day no more are armed on that
 * day; clearing always works.
 */
export const scheduleCancel: ActionHandler<ScheduleCancelAction> = ({ time }, maker, { book, nowMs }) => {
  const reply = { status: 'ok' as const, response: { type: 'default' } };
  if (time === undefined) return { effects: [{ type: 'schedule', timeMs: null }], reply };
  if (time < nowMs + MIN_SCHEDULE_MS) return { effects: [], reply: refuse(REFUSALS.scheduleTooSoon()) };
  if (book.triggers(maker, nowMs) >= MAX_TRIGGERS_PER_DAY) {
    return { effects: [], reply: refuse(REFUSALS.scheduleUsedUp()) };
  }
  return { effects: [{ type: 'schedule', timeMs: time }], reply };
};
