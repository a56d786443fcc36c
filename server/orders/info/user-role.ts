import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

/** What an address is here: `user` for a maker or anybody with a ledger row, else `missing`. */
export const userRole: InfoHandler = (request, { gateway }) => ({
  role: gateway.isKnown(asAddress(request.user, 'user')) ? 'user' : 'missing',
});
