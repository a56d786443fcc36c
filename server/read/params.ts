import type { Context } from 'koa';
import { toSafeInt } from '../../core/amounts.js';
import type { Address, Market } from '../../core/types.js';
import { badRequest, notFound } from '../errors.js';
import { addressParameter, sequenceParameter } from './schemas.js';

/** The listed market of that name; case-sensitive. Throws 404 NOT_FOUND. */
export function marketOf(markets: readonly Market[], pair: string): Market {
  const market = markets.find((candidate) => candidate.pair === pair);
  if (market === undefined) throw notFound(`Unknown pair: ${pair.slice(0, 64)}`);
  return market;
}

/** The market of the query's `pair`, which may be left out while one market is listed. Throws 400 BAD_REQUEST or 404 NOT_FOUND. */
export function queryMarket(ctx: Context, markets: readonly Market[]): Market {
  const named = queryPair(ctx, markets);
  if (named !== undefined) return named;
  const [only, second] = markets;
  if (only === undefined || second !== undefined)
    throw badRequest('The query parameter pair is required: several markets are served');
  return only;
}

/** The query's `limit`, from 1 to `most`; another number when it is left out. Throws 400 BAD_REQUEST. */
export function queryLimit(ctx: Context, most: number, otherwise = most): number {
  const value = querySequence(ctx, 'limit');
  if (value === undefined) return otherwise;
  if (value < 1 || value > most) throw badRequest(`limit must be from 1 to ${most}`);
  return value;
}

/** A parameter of the query; undefined when it is left out or empty. Throws 400 BAD_REQUEST when it is given more than once. */
function queryText(ctx: Context, name: string): string | undefined {
  const text = ctx.query[name];
  if (Array.isArray(text)) throw badRequest(`${name} is given more than once`);
  return text === '' ? undefined : text;
}

/** A number of the query; undefined when it is left out. Throws 400 BAD_REQUEST. */
export function querySequence(ctx: Context, name: string): number | undefined {
  const text = queryText(ctx, name);
  return text === undefined ? undefined : sequenceOf(text, name);
}

/** Latest time that a query may name: the year 5000. */
const MAX_TIME_MS = 95_617_584_000_000;

/** Unix milliseconds of the query; undefined when they are left out. Throws 400 BAD_REQUEST. */
export function queryTime(ctx: Context, name: string): number | undefined {
  const timeMs = querySequence(ctx, name);
  if (timeMs !== undefined && timeMs > MAX_TIME_MS) throw badRequest(`${name} must be Unix milliseconds`);
  return timeMs;
}

/** An address of the query, in lower case; undefined when it is left out. Throws 400 BAD_REQUEST. */
export function queryAddress(ctx: Context, name: string): Address | undefined {
  const text = queryText(ctx, name);
  return text === undefined ? undefined : addressOf(text);
}

/** The query's `before`: what the `next` of a page said, so many numbers joined by hyphens; null when it is left out. Throws 400 BAD_REQUEST. */
export function queryCursor(ctx: Context, numbers: number): number[] | null {
  const text = queryText(ctx, 'before');
  if (text === undefined) return null;
  const parts = text.split('-');
  if (parts.length !== numbers) throw badRequest('before must be the next of an earlier page');
  return parts.map((part) => sequenceOf(part, 'before'));
}

/** An address in any letter case, answered in lower case. Throws 400 BAD_REQUEST. */
export function addressOf(text: string): Address {
  if (!addressParameter.safeParse(text).success) throw badRequest('Not an address: 0x and 40 hex digits are expected');
  return text.toLowerCase() as Address;
}

/** A decimal integer within JSON's safe range. Throws 400 BAD_REQUEST. */
export function sequenceOf(text: string, name: string): number {
  if (!sequenceParameter.safeParse(text).success) throw badRequest(`${name} must be a non-negative integer`);
  try {
    return toSafeInt(text);
  } catch (error) {
    if (error instanceof RangeError) throw badRequest(`${name} is out of range`);
    throw error;
  }
}

/** The market of the query's `pair`; undefined when it is left out. Throws 400 BAD_REQUEST or 404 NOT_FOUND. */
export function queryPair(ctx: Context, markets: readonly Market[]): Market | undefined {
  const pair = queryText(ctx, 'pair');
  return pair === undefined ? undefined : marketOf(markets, pair);
}

/** The market of the query's `pair`, or all when it is left out. Throws 400 BAD_REQUEST or 404 NOT_FOUND. */
export function queryPairs(ctx: Context, markets: readonly Market[]): readonly Market[] {
  const market = queryPair(ctx, markets);
  return market === undefined ? markets : [market];
}
