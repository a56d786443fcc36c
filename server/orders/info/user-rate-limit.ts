import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

/** Requests are not counted per account here: nothing is used up, and the cap is out of reach. */
export const userRateLimit: InfoHandler = (request) => {
  asAddress(request.user, 'user');
  return { cumVlm: '0.0', nRequestsUsed: 0, nRequestsCap: Number.MAX_SAFE_INTEGER, nRequestsSurplus: 0 };
};
