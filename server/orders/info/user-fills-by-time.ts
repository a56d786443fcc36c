import { asAddress, asBoolean, asUint } from '../../../core/wire/shape.js';
import { userOrderFillsByTime } from '../../../ledger/views/reads.js';
import { MAX_USER_FILLS } from '../limits.js';
import type { InfoHandler } from './types.js';
import { fillRow, refuseAggregation } from './user-fills.js';

/** Fills of a maker within two times, both included: the oldest 2,000 first, or with `reversed` the newest. */
export const userFillsByTime: InfoHandler = async (request, { db, gateway }) => {
  const user = asAddress(request.user, 'user');
  refuseAggregation(request);
  const fills = await userOrderFillsByTime(db.reads, user, {
    fromMs: asUint(request.startTime, 'startTime'),
    toMs: asUint(request.endTime ?? Number.MAX_SAFE_INTEGER, 'endTime'),
    reversed: asBoolean(request.reversed ?? false, 'reversed'),
    limit: MAX_USER_FILLS,
  });
  return fills.map((fill) => fillRow(fill, gateway));
};
