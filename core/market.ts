/** The grid of a market: ticks and lots, their decimals, and the identity of a pair. */
import { ceilDiv, formatUnits, parseDecimal, powerOfTen } from './amounts.js';
import { hexToBytes, keccak256 } from './hash.js';
import type { Address, Hex, Market, Side, Token } from './types.js';

/** Curve prices are integers of 1/256 tick. */
export const SUBTICKS_PER_TICK = 256n;
/** Highest order price; packed words can hold higher ones. */
export const MAX_PRICE_TICKS = 2n ** 31n;
/** Bounds that the contract sets on a listing. */
const MAX_LOT_EXPONENT = 18;
const MAX_TICK_LOT_MANTISSA = 1023n;
const MAX_TICK_LOT_EXPONENT = 31;
export const MAX_TTL_SEC = 255;

/** A listing that this module refuses; the contract would refuse it, too. */
export class MarketError extends Error {
  override readonly name = 'MarketError';

  constructor(
    readonly code: 'same_token' | 'bad_address' | 'bad_lot' | 'bad_tick' | 'bad_ttl',
    message: string,
  ) {
    super(message);
  }
}

/** A market as its MarketListed event and its token contracts describe it. */
interface MarketListing {
  index: number;
  base: Token;
  quote: Token;
  lotUnits: bigint;
  tickLotUnits: bigint;
  maxTtlSec: number;
}

/** The arguments of listMarket that fix the grid: lotUnits = 10^lotExponent, tickLotUnits = tickLotMantissa x 10^tickLotExponent. */
interface GridExponents {
  lotExponent: number;
  tickLotMantissa: bigint;
  tickLotExponent: number;
}

/** keccak256 of the two packed addresses, the lower one first; the order of the arguments does not matter. Throws MarketError. */
export function marketId(a: Address, b: Address): Hex {
  for (const address of [a, b]) {
    if (!/^0x[0-9a-fA-F]{40}$/.test(address)) throw new MarketError('bad_address', `not an address: ${address}`);
  }
  const [low, high] = [a.toLowerCase(), b.toLowerCase()].sort() as [string, string];
  if (low === high) throw new MarketError('same_token', 'a market needs two different tokens');
  return keccak256(hexToBytes(`${low}${high.slice(2)}`));
}

/** The grid as the contract stores it. Throws MarketError `bad_lot` or `bad_tick` when the contract can't hold it. */
export function gridExponents(lotUnits: bigint, tickLotUnits: bigint): GridExponents {
  const lot = powerOfTenPart(lotUnits);
  if (lot.mantissa !== 1n || lot.exponent > MAX_LOT_EXPONENT) {
    throw new MarketError(
      'bad_lot',
      `a lot must be a power of ten of at most 10^${MAX_LOT_EXPONENT} units, not ${lotUnits}`,
    );
  }
  const tick = powerOfTenPart(tickLotUnits);
  let { mantissa, exponent } = tick;
  while (exponent > MAX_TICK_LOT_EXPONENT && mantissa <= MAX_TICK_LOT_MANTISSA) {
    mantissa *= 10n;
    exponent -= 1;
  }
  if (mantissa === 0n || mantissa > MAX_TICK_LOT_MANTISSA) {
    throw new MarketError(
      'bad_tick',
      `a tick of a lot must be 1..${MAX_TICK_LOT_MANTISSA} x 10^0..${MAX_TICK_LOT_EXPONENT}, not ${tickLotUnits}`,
    );
  }
  return { lotExponent: lot.exponent, tickLotMantissa: mantissa, tickLotExponent: exponent };
}

function powerOfTenPart(value: bigint): { mantissa: bigint; exponent: number } {
  if (value <= 0n) return { mantissa: 0n, exponent: 0 };
  const digits = value.toString();
  const mantissa = digits.replace(/0+$/, '');
  return { mantissa: BigInt(mantissa), exponent: digits.length - mantissa.length };
}

/** A market with everything derived from its listing: id, pair name, and the exact decimals of tick and lot. Throws MarketError. */
export function createMarket(listing: MarketListing): Market {
  const { base, quote, lotUnits, tickLotUnits, maxTtlSec } = listing;
  gridExponents(lotUnits, tickLotUnits);
  if (!Number.isInteger(maxTtlSec) || maxTtlSec < 1 || maxTtlSec > MAX_TTL_SEC) {
    throw new MarketError('bad_ttl', `maxTtlSec must be 1..${MAX_TTL_SEC}, not ${maxTtlSec}`);
  }
  const market = {
    index: listing.index,
    id: marketId(base.address, quote.address),
    pair: `${base.symbol}-${quote.symbol}`,
    base: { ...base, address: base.address.toLowerCase() as Address },
    quote: { ...quote, address: quote.address.toLowerCase() as Address },
    lotUnits,
    tickLotUnits,
    maxTtlSec,
    lotSize: formatUnits(lotUnits, base.decimals),
  };
  return { ...market, tickSize: ticksToPrice(market, 1n) };
}

type Grid = Readonly<Pick<Market, 'base' | 'quote' | 'lotUnits' | 'tickLotUnits'>>;

/** Decimals of a price: price = ticks x tickLotUnits / 10^priceScale, in quote tokens for one base token. May be negative. */
function priceScale(market: Grid): number {
  let scale = priceScales.get(market);
  if (scale === undefined) {
    const { lotExponent } = gridExponents(market.lotUnits, market.tickLotUnits);
    scale = lotExponent + market.quote.decimals - market.base.decimals;
    priceScales.set(market, scale);
  }
  return scale;
}

/** Cached: a grid never changes, and each order needs its scale. */
const priceScales = new WeakMap<Grid, number>();

/** Ticks of a decimal price, or null when it is between two ticks. Zero gives 0n. Throws AmountError on a malformed decimal. */
export function priceToTicks(market: Grid, price: string): bigint | null {
  const { digits, scale } = parseDecimal(price);
  const shift = priceScale(market) - scale;
  const dividend = shift >= 0 ? digits * powerOfTen(shift) : digits;
  const divisor = shift < 0 ? market.tickLotUnits * powerOfTen(-shift) : market.tickLotUnits;
  return dividend % divisor === 0n ? dividend / divisor : null;
}

/** Lots of a decimal size in base tokens, or null when it is not a whole number of lots. Zero gives 0n. Throws AmountError when malformed. */
export function sizeToLots(market: Grid, size: string): bigint | null {
  const { digits, scale } = parseDecimal(size);
  if (scale > market.base.decimals) return null;
  const units = digits * powerOfTen(market.base.decimals - scale);
  return units % market.lotUnits === 0n ? units / market.lotUnits : null;
}

/** Exact decimal price, in quote tokens for one base token. */
export function ticksToPrice(market: Grid, priceTicks: bigint): string {
  const scale = priceScale(market);
  const value = priceTicks * market.tickLotUnits;
  return scale >= 0 ? formatUnits(value, scale) : formatUnits(value * powerOfTen(-scale), 0);
}

/** Exact decimal of a curve's price: a 256th of a tick is 0.00390625 of it. */
export function subticksToPrice(market: Grid, subticks: bigint): string {
  const scale = priceScale(market) + 8;
  const value = subticks * 390_625n * market.tickLotUnits;
  return scale >= 0 ? formatUnits(value, scale) : formatUnits(value * powerOfTen(-scale), 0);
}

/** Exact decimal size of whole lots, in base tokens. */
export function lotsToSize(market: Grid, sizeLots: bigint): string {
  return unitsToSize(market, sizeLots * market.lotUnits);
}

/** Exact decimal size of base units, in base tokens. */
export function unitsToSize(market: Grid, baseUnits: bigint): string {
  return formatUnits(baseUnits, market.base.decimals);
}

/** Quote units of `baseUnits` at a whole-tick price, rounded down. */
export function quoteUnitsFloor(
  market: Pick<Grid, 'lotUnits' | 'tickLotUnits'>,
  priceTicks: bigint,
  baseUnits: bigint,
): bigint {
  return (priceTicks * market.tickLotUnits * baseUnits) / market.lotUnits;
}

/** Quote units of `baseUnits` at a whole-tick price, rounded up. */
export function quoteUnitsCeil(market: Grid, priceTicks: bigint, baseUnits: bigint): bigint {
  return ceilDiv(priceTicks * market.tickLotUnits * baseUnits, market.lotUnits);
}

/** The token that fills of a side take from its makers. */
export function payToken(market: Pick<Market, 'base' | 'quote'>, side: Side): Address {
  return side === 'ask' ? market.base.address : market.quote.address;
}
