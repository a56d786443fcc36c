import type { Context } from 'koa';
import { toSafeInt } from '../../core/amounts.js';
import type { Address, Market } from '../../core/types.js';
import { badRequest, notFound } from '../errors.js';
import { addressParameter, sequenceParameter } from './schemas.js';

/** The listed market of that name; the letters' case counts. Throws 404 NOT_FOUND. */
export function marketOf(markets: readonly Market[], pair: string): Market {
  const market = markets.find((candidate) => candidate.pair === pair);
  if (market === undefined) throw notFound(`Unknown pair: ${pair.slice(0, 64)}`);
  return market;
}

/** The market of the query's `pair`, which may be left out while one market is listed. Throws 400 BAD_REQUEST or 404 NOT_FOUND. */
export function queryMarket(ctx: Context, markets: readonly Market[]): Market {
  const pair = ctx.query.pair;
  if (Array.isArray(pair)) throw badRequest('pair is given more than once');
  if (pair !== undefined && pair !== '') return marketOf(markets, pair);
  const [only, second] = markets;
  if (only === undefined || second !== undefined)
    throw badRequest('The query parameter pair is required: several markets are served');
  return only;
}

/** The query's `limit`, from 1 to `most`; `most` when it is left out. Throws 400 BAD_REQUEST. */
export function queryLimit(ctx: Context, most: number): number {
  const { limit } = ctx.query;
  if (limit === undefined || limit === '') return most;
  if (Array.isArray(limit)) throw badRequest('limit is given more than once');
  const value = sequenceOf(limit, 'limit');
  if (value < 1 || value > most) throw badRequest(`limit must be from 1 to ${most}`);
  return value;
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
