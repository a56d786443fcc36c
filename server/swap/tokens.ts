import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import { tokenLogo } from '../../core/swap/token-logo.js';
import type { Address } from '../../core/types.js';
import { ApiError, badRequest } from '../errors.js';
import type { SwapDeps, SwapToken } from './deps.js';

/** Stand-ins for native ETH that clients send by habit. */
const NATIVE = ['0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', '0x0000000000000000000000000000000000000000'];

/** The part of a Uniswap token list that is served; https://tokenlists.org describes the rest. */
export const tokenListSchema = z.object({
  name: z.string(),
  tokens: z.array(
    z.object({
      chainId: z.int().positive(),
      address: z
        .string()
        .regex(/^0x[0-9a-fA-F]{40}$/, 'must be a 20-byte address')
        .transform((value) => value.toLowerCase() as Address),
      symbol: z.string().min(1),
      name: z.string().min(1),
      decimals: z.int().min(0).max(77),
      logoURI: z.string().default(''),
    }),
  ),
});

/**
 * GET /api/v1/tokens?chainId=: the tokens of this chain that may be quoted. Never an empty list: while nothing may be quoted it answers
 * 503.
 */
export function tokensHandler(deps: SwapDeps): RouterMiddleware {
  return (ctx) => {
    const { tokens, chainId } = deps;
    const asked = ctx.query['chainId'];
    if (asked !== undefined && asked !== `${chainId}`) throw badRequest(`chainId must be ${chainId}`);
    const served = tokens.filter((token) => token.chainId === chainId);
    if (served.length === 0) throw new ApiError(503, 'NOT_READY', 'No token is listed yet');
    ctx.body = served.map(pictured);
  };
}

/** With a disc in a colour of its own where the list has no picture. */
const pictured = (token: SwapToken): SwapToken =>
  token.logoURI === '' ? { ...token, logoURI: tokenLogo(`#${token.address.slice(2, 8)}`) } : token;

/** The token of a request. Throws 400 for native ETH, with what to do instead, and for a token that is not on the list. */
export function requireToken({ tokens, wrappedNative, chainId }: SwapDeps, field: string, address: Address): SwapToken {
  if (NATIVE.includes(address)) {
    const how = field === 'sellToken' ? 'wrap it first' : 'unwrap it after the fill';
    throw badRequest(`${field}: native ETH is not an order token; use the wrapped token ${wrappedNative} and ${how}`);
  }
  const token = tokens.find((one) => one.address === address && one.chainId === chainId);
  if (token === undefined) throw badRequest(`${field}: ${address} is not supported; GET /tokens lists what is`);
  return token;
}
