import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

/** What an address is here: `agent` of a maker, `user` for a maker or anybody with a ledger row, else `missing`. */
export const userRole: InfoHandler = (request, { gateway }) => {
  const user = asAddress(request.user, 'user');
  const standing = gateway.resolve(user);
  if (standing.kind === 'unknown') return { role: 'missing' };
  return standing.maker === user ? { role: 'user' } : { role: 'agent', data: { user: standing.maker } };
};
