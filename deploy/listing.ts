/** Markets as a configuration writes them, and as the contract takes them. */
import { getAddress } from 'ethers';
import { AmountError, formatUnits, parseUnits } from '../core/amounts.js';
import { MarketError, gridExponents, marketId } from '../core/market.js';
import type { Address } from '../core/types.js';
import { MAX_WIRE_DECIMALS, canonicalDecimal } from '../core/wire/decimal.js';
import { DeployError } from './errors.js';
import type { ManifestMarket, ManifestToken } from './manifest.js';

export interface DeployMarket extends ManifestMarket {
  /** Longest time from a post to its deadline that a poster may ask for. */
  maxTtlSec: number;
}

export interface Listing {
  market: DeployMarket;
  /** The contract's id of the pair. */
  id: string;
  base: ManifestToken;
  quote: ManifestToken;
  lotUnits: bigint;
  tickLotUnits: bigint;
  lotExponent: number;
  tickLotMantissa: bigint;
  tickLotExponent: number;
}

/** Enough decimals to express any tick size exactly. */
const TICK_SCALE = 36;

/** A market of the configuration as the contract takes it. Throws `BAD_CONFIG` when a token is unknown, or when the contract or whole token units can't express the grid. */
export function listingOf(market: DeployMarket, tokens: readonly ManifestToken[]): Listing {
  try {
    return gridOf(market, tokens);
  } catch (error) {
    if (!(error instanceof AmountError || error instanceof MarketError)) throw error;
    throw new DeployError('BAD_CONFIG', `${market.pair}: ${error.message}`);
  }
}

/**
 * Throws `BAD_CONFIG` when clients can't sign every price and size of the grid: the wire has 8 decimals. To be called for new markets only, since a
 * listed market must stay in the configuration.
 */
export function assertSignable({ market: { pair, tickSize, lotSize } }: Listing): void {
  for (const [what, step] of [
    ['tick', tickSize],
    ['lot', lotSize],
  ] as const) {
    if (canonicalDecimal(step) !== null) continue;
    throw new DeployError(
      'BAD_CONFIG',
      `${pair}: a ${what} of ${step} is finer than the ${MAX_WIRE_DECIMALS} decimals that orders are signed with`,
    );
  }
}

/** Throws `BAD_CONFIG` when two entries are one market: a pair and its inverse share an id, and the first one listed says which is base. */
export function assertDistinct(listings: readonly Listing[]): void {
  const pairs = new Map<string, string>();
  for (const { id, market } of listings) {
    const other = pairs.get(id);
    if (other !== undefined)
      throw new DeployError('BAD_CONFIG', `${other} and ${market.pair} are one market; name one`);
    pairs.set(id, market.pair);
  }
}

function gridOf(market: DeployMarket, tokens: readonly ManifestToken[]): Listing {
  const token = (symbol: string | undefined): ManifestToken => {
    const found = tokens.find((one) => one.symbol === symbol);
    if (found === undefined) throw new DeployError('BAD_CONFIG', `${market.pair}: no token ${symbol}`);
    return found;
  };
  const [baseSymbol, quoteSymbol] = market.pair.split('-');
  const base = token(baseSymbol);
  const quote = token(quoteSymbol);
  const lotUnits = parseUnits(market.lotSize, base.decimals);
  const exact = parseUnits(market.tickSize, TICK_SCALE) * lotUnits * 10n ** BigInt(quote.decimals);
  const divisor = 10n ** BigInt(TICK_SCALE + base.decimals);
  if (exact % divisor !== 0n) {
    throw new DeployError('BAD_CONFIG', `${market.pair}: one tick of one lot is not a whole number of quote units`);
  }
  const tickLotUnits = exact / divisor;
  const id = marketId(base.address as Address, quote.address as Address);
  return { market, id, base, quote, lotUnits, tickLotUnits, ...gridExponents(lotUnits, tickLotUnits) };
}

/** The grid that the contract has, in the words of a configuration. */
export function gridText(lotUnits: bigint, tickLotUnits: bigint, base: ManifestToken, quote: ManifestToken): string {
  // tick = tickLotUnits / 10^quoteDecimals / (lotUnits / 10^baseDecimals), and lotUnits is a power of ten.
  const scaled = (tickLotUnits * 10n ** BigInt(TICK_SCALE + base.decimals)) / lotUnits;
  return `tick ${formatUnits(scaled, TICK_SCALE + quote.decimals)}, lot ${formatUnits(lotUnits, base.decimals)}`;
}

/** The token as a manifest names it. */
export function manifestToken({ symbol, address, decimals }: ManifestToken): ManifestToken {
  return { symbol, address: getAddress(address), decimals };
}
