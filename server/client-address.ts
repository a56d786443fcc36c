import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

/**
 * Address of the client of a request. Behind a proxy it is the last one of X-Forwarded-For, which the proxy itself wrote: those in front
 * of it are whatever the client claims, and would let it choose by which address it is counted.
 */
export function clientAddress(request: Pick<IncomingMessage, 'headers' | 'socket'>, trustProxy: boolean): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  const named = typeof forwarded === 'string' ? (forwarded.split(',').at(-1) ?? '').trim() : '';
  return named === '' ? (request.socket.remoteAddress ?? '') : named;
}

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * What an address is counted by: an IPv4 address by itself, also when it is written as an IPv6 one, and an IPv6 address by the first 64 bits,
 * because one client has all the rest.
 */
export function networkOf(address: string): string {
  const mapped = MAPPED_IPV4.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = '', tail = ''] = address.toLowerCase().replace(/%.*$/, '').split('::');
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const before = groupsOf(head);
  const after = groupsOf(tail);
  // A dotted ending stands for two groups.
  const zeros = Math.max(8 - before.length - after.length - (address.includes('.') ? 1 : 0), 0);
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
