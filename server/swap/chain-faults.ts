import type { RouterMiddleware } from '@koa/router';
import { RpcResponseError, RpcUnavailableError } from '../../core/rpc-errors.js';
import { ApiError } from '../errors.js';

/** When nodes do not answer, or only with errors, the answer is 503 `CHAIN_UNAVAILABLE`, with nothing stored. */
export const chainFaults: RouterMiddleware = async (_ctx, next) => {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof RpcUnavailableError) && !(error instanceof RpcResponseError)) throw error;
    const message = 'The chain can not be asked at the moment; try again soon';
    throw new ApiError(503, 'CHAIN_UNAVAILABLE', message, error);
  }
};
