/** The span of time of a summary. */
import type { Context } from 'koa';
import type { Span } from '../../ledger/accounts/reads.js';
import { badRequest } from '../errors.js';
import { queryTime } from './params.js';

/** Lengths of intervals of a summary, and how many of them it may span. */
const LENGTHS = { '1h': { periodMs: 3_600_000, most: 744 }, '1d': { periodMs: 86_400_000, most: 400 } } as const;
type PeriodName = keyof typeof LENGTHS;
export const PERIODS = ['1h', '1d'] as const satisfies readonly PeriodName[];
const DEFAULT_PERIODS = 30;

export const SPAN_LIMITS = `${LENGTHS['1h'].most} hours or ${LENGTHS['1d'].most} days`;

/** Days that a span has a part of. */
export const daysOf = ({ fromMs, toMs }: Span): number => Math.ceil((toMs - fromMs) / LENGTHS['1d'].periodMs);

/** The query's `interval`, `from` and `to`: whole intervals, those that contain either time included; the last 30 without them. Throws 400 BAD_REQUEST. */
export function spanOf(ctx: Context, nowMs: number): { interval: PeriodName; periodMs: number; span: Span } {
  const named = ctx.query.interval ?? '1d';
  const interval = PERIODS.find((one) => one === named);
  if (interval === undefined) throw badRequest(`interval must be one of ${PERIODS.join(', ')}`);
  const { periodMs, most } = LENGTHS[interval];
  const openOf = (timeMs: number): number => Math.floor(timeMs / periodMs) * periodMs;
  const toMs = openOf(queryTime(ctx, 'to') ?? nowMs) + periodMs;
  const fromMs = openOf(queryTime(ctx, 'from') ?? Math.max(toMs - DEFAULT_PERIODS * periodMs, 0));
  if (fromMs >= toMs) throw badRequest('from must not be later than to');
  if (toMs - fromMs > most * periodMs)
    throw badRequest(
      `from and to span more than ${most} intervals of ${interval}: ask from ${toMs - most * periodMs} on`,
    );
  return { interval, periodMs, span: { fromMs, toMs } };
}
