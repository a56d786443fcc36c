/** Markets as a configuration writes them, and as the contract takes them. */
import { getAddress } from 'ethers';
import { formatUnits, parseUnits } from '../core/amounts.js';
import { gridExponents, marketId } from '../core/market.js';
import type { Address } from '../core/types.js';
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

/** Decimals that hold any tick size exactly. */
const TICK_SCALE = 36;

/** Throws when a token is unknown, or when one tick of one lot is not a whole number of quote units. */
export function listingOf(market: DeployMarket, tokens: readonly ManifestToken[]): Listing {
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
