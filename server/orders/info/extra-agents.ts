import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

/** Named agents of a maker: agents can't be approved yet, so there are none. */
export const extraAgents: InfoHandler = (request) => {
  asAddress(request.user, 'user');
  return [];
};
