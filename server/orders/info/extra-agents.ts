import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

/** Live agents of a maker that have a name. */
export const extraAgents: InfoHandler = (request, { gateway }) =>
  gateway
    .agentsOf(asAddress(request.user, 'user'))
    .filter(({ name }) => name !== '')
    .map(({ name, address, validUntilMs }) => ({ name, address, validUntil: validUntilMs }));
