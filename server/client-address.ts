import type { IncomingMessage } from 'node:http';

/**
 * Address of the client of a request. Behind a proxy it is the last one of X-Forwarded-For, which the proxy itself wrote: those in front
 * of it are whatever the client claims, and would let it choose by which address it is counted.
 */
export function clientAddress(request: Pick<IncomingMessage, 'headers' | 'socket'>, trustProxy: boolean): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  const named = typeof forwarded === 'string' ? (forwarded.split(',').at(-1) ?? '').trim() : '';
  return named === '' ? (request.socket.remoteAddress ?? '') : named;
}
