/** The file that says how a platform is set up on one chain. It holds no secret. */
import { readFileSync } from 'node:fs';
import { getAddress, isAddress } from 'ethers';
import { z } from 'zod';
import { formatUnits } from '../core/amounts.js';
import { MAX_TTL_SEC } from '../core/market.js';
import { MAX_SYMBOL_CHARS, isUsableSymbol } from '../core/token-names.js';
import { chainPreset } from './chain-preset.js';
import { PERMIT2_ADDRESS } from './sandbox/canonical.js';
import { DeployError } from './errors.js';
import { assertDistinct, listingOf } from './listing.js';

/** The contract's cap on a taker's fee. */
const MAX_RATE_PPM = 10_000;

/** With fewer decimals, rounding to units of the quote token costs the operator a notable amount in each swap. */
const FINE_DECIMALS = 6;

const address = z
  .string()
  .refine((text) => isAddress(text) && !/^0x0+$/.test(text), 'must be an address, with a right checksum if it has one')
  .transform((text) => getAddress(text));
const decimal = z.string().regex(/^(0|[1-9]\d*)(\.\d+)?$/, 'must be a decimal string');
/** Longest delay of withdrawals, in seconds: what is longer was meant in another unit, and would lock every maker's funds. */
const MAX_WITHDRAW_DELAY_SEC = 30 * 86_400;

const configSchema = z
  .strictObject({
    chainId: z.number().int().positive(),
    /** The account that is to own the contracts after the deployment. */
    owner: address,
    permit2: address.default(PERMIT2_ADDRESS),
    withdrawDelaySec: z.number().int().min(0).max(MAX_WITHDRAW_DELAY_SEC),
    tokens: z.array(
      z.strictObject({
        symbol: z
          .string()
          .refine(isUsableSymbol, `must be 1 to ${MAX_SYMBOL_CHARS} letters, digits, points and underscores`),
        address,
        decimals: z.number().int().min(0).max(36),
        /** An account that holds the token, whose transfers are measured if recent transfers show no other holder. */
        holder: address.optional(),
        /** The token has no readable symbol; the platform then names it by its address. */
        noSymbol: z.boolean().default(false),
      }),
    ),
    markets: z.array(
      z.strictObject({
        pair: z.string().regex(/^[^-]+-[^-]+$/, 'must be <BASE>-<QUOTE>'),
        tickSize: decimal,
        lotSize: decimal,
        maxTtlSec: z.number().int().min(1).max(MAX_TTL_SEC),
        /** The operator accepts what the rounding of a quote token with few decimals costs it. */
        coarseQuote: z.boolean().default(false),
      }),
    ),
    curvePosters: z.array(address),
    claimPosters: z.array(address),
    executors: z.array(address).default([]),
    /** Left out: the routers of the venues that the chain is known for. */
    targets: z.array(address).optional(),
    /** The manager of the pools of Uniswap v4 for which a router is deployed. Left out: the chain's known one, where it has one. */
    uniswapV4PoolManager: address.optional(),
    takerFees: z
      .array(z.strictObject({ taker: address, ratePpm: z.number().int().min(0).max(MAX_RATE_PPM) }))
      .default([]),
  })
  .superRefine((config, context) => {
    const complain = (path: string, message: string): void =>
      context.addIssue({ code: 'custom', path: [path], message });
    const unique = (path: string, values: readonly string[]): void => {
      const twice = values.find((value, i) => values.indexOf(value) !== i);
      if (twice !== undefined) complain(path, `names ${twice} twice`);
    };
    unique(
      'tokens',
      config.tokens.map(({ symbol }) => symbol),
    );
    unique(
      'tokens',
      config.tokens.map((token) => token.address),
    );
    unique(
      'markets',
      config.markets.map(({ pair }) => pair),
    );
    unique(
      'takerFees',
      config.takerFees.map(({ taker }) => taker),
    );
    for (const { pair, coarseQuote } of config.markets) {
      const quote = config.tokens.find(({ symbol }) => symbol === pair.split('-')[1]);
      if (quote === undefined || quote.decimals >= FINE_DECIMALS || coarseQuote) continue;
      const loss = (makers: bigint): string => `${formatUnits(makers - 1n, quote.decimals)} ${quote.symbol}`;
      complain(
        'markets',
        `${pair}: ${quote.symbol} has ${quote.decimals} decimals, and each sell into a level that makers share costs the operator up to one ` +
          `smallest unit per maker but one: ${loss(2n)} with 2 makers, ${loss(10n)} with 10; say "coarseQuote": true to list it all the same`,
      );
    }
    for (const right of ['curvePosters', 'claimPosters', 'executors', 'targets'] as const)
      unique(right, config[right] ?? []);
    const both = config.curvePosters.find((account) => config.claimPosters.includes(account));
    if (both !== undefined) complain('claimPosters', `${both} posts curves; one key must not both price and pay`);
  });

export type DeployConfig = z.output<typeof configSchema>;

/** Throws `BAD_CONFIG` with all problems at once, one a line. */
export function parseConfig(value: unknown): DeployConfig {
  const parsed = configSchema.safeParse(withKnownTokens(value));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`);
    throw new DeployError('BAD_CONFIG', problems.join('\n'));
  }
  const { markets, tokens } = parsed.data;
  const listings = markets.map((market) => attempt(() => listingOf(market, tokens)));
  const broken = listings.flatMap((listing) => (listing instanceof DeployError ? [listing.message] : []));
  if (broken.length !== 0) throw new DeployError('BAD_CONFIG', broken.join('\n'));
  assertDistinct(markets.map((market) => listingOf(market, tokens)));
  return parsed.data;
}

/** Completes tokens that are named by their symbol only from the chain's preset. */
function withKnownTokens(value: unknown): unknown {
  const named = z.looseObject({ chainId: z.number(), tokens: z.array(z.looseObject({})) }).safeParse(value);
  if (!named.success) return value;
  const known = chainPreset(named.data.chainId)?.tokens ?? [];
  const tokens = named.data.tokens.map((token) => {
    const found = 'address' in token ? undefined : known.find(({ symbol }) => symbol === token['symbol']);
    return found === undefined ? token : { address: found.address, decimals: found.decimals, ...token };
  });
  return { ...named.data, tokens };
}

function attempt<T>(compute: () => T): T | DeployError {
  try {
    return compute();
  } catch (error) {
    if (error instanceof DeployError) return error;
    throw error;
  }
}

/** Reads and checks the file at `path`. */
export function readConfig(path: string): DeployConfig {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new DeployError(
      'BAD_CONFIG',
      `can't read ${path}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  return parseConfig(value);
}
