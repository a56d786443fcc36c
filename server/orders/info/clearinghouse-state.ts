import { asAddress } from '../../../core/wire/shape.js';
import type { InfoHandler } from './types.js';

/** Margin accounts do not exist here; the shape with zeros is what clients expect of an empty one. */
export const clearinghouseState: InfoHandler = (request, { clock }) => {
  asAddress(request.user, 'user');
  const summary = { accountValue: '0.0', totalNtlPos: '0.0', totalRawUsd: '0.0', totalMarginUsed: '0.0' };
  return {
    marginSummary: summary,
    crossMarginSummary: summary,
    crossMaintenanceMarginUsed: '0.0',
    withdrawable: '0.0',
    assetPositions: [],
    time: clock(),
  };
};
