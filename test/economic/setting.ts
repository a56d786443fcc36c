/** Who takes part in the economic search, where, and with what. */
import { createMarket } from '../../core/market.js';
import type { KnotPolicy } from '../../core/curve/compress.js';
import { createMinOrderUnits, type MinOrderUnits, type MinOrderValues } from '../../core/min-order.js';
import type { Address, Market, Token } from '../../core/types.js';
import { sandboxAccounts, type SandboxRole } from '../../deploy/sandbox/accounts.js';

/** What a post does to the carry: nothing, as contracts before the rule did, or raise it to a segment's end. */
export type CarryRule = 'none' | 'raised';

/** The sandbox's accounts, so that a strategy can be played on its contracts unchanged. */
export const COLLUDING_MAKERS = ['maker1', 'maker3'] as const satisfies readonly SandboxRole[];
export const HONEST_MAKERS = ['maker2', 'taker3'] as const satisfies readonly SandboxRole[];
/** The first maker also takes; the last one pays taker fees where a market charges them. */
export const COLLUDING_TAKERS = ['taker2', 'maker1', 'taker1'] as const satisfies readonly SandboxRole[];
export const HONEST_TAKER = 'executor' satisfies SandboxRole;
export const FEE_TAKER = 'taker1' satisfies SandboxRole;
export const FEE_PPM = 3_000n;

const accounts = new Map(sandboxAccounts().map(({ role, address }) => [role, address.toLowerCase() as Address]));
export const addressOf = (role: SandboxRole): Address => accounts.get(role)!;
export const roleOf = (address: Address): string =>
  [...accounts].find(([, known]) => known === address)?.[0] ?? address;
export const OPERATOR = addressOf('owner');
export const COLLUDERS: ReadonlySet<Address> = new Set([...COLLUDING_MAKERS, ...COLLUDING_TAKERS].map(addressOf));
export const HONEST: ReadonlySet<Address> = new Set(HONEST_MAKERS.map(addressOf));

/** Markets, fair prices and funds. Everything is valued at fair prices that never move, so that nobody gains by luck. */
export interface Setting {
  name: string;
  markets: readonly Market[];
  /** Fair price of each market in ticks. */
  midTicks: readonly bigint[];
  /** Value of one unit of a token in a common measure, consistent with the fair prices. */
  unitValue: ReadonlyMap<Address, bigint>;
  /** Common measure of one dollar, for display. */
  dollar: bigint;
  /** What every maker has in its ledger row and every taker in its wallet, in units of each token. */
  endowment: ReadonlyMap<Address, bigint>;
  /** A usual size of an order, in lots of each market. */
  sizeLots: readonly bigint[];
  knots: KnotPolicy;
  /** Index of a market that charges taker fees. */
  feeMarket: number | null;
  minOrderUnits: MinOrderUnits;
}

interface Listed {
  base: Token;
  quote: Token;
  lotUnits: bigint;
  tickLotUnits: bigint;
  midTicks: bigint;
}

const fixed = (digit: string): Address => `0x${digit.repeat(40)}`;
const token = (symbol: string, digit: string, decimals: number): Token => ({
  symbol,
  address: fixed(digit),
  decimals,
});
const WETH = token('WETH', '1', 18);
const USDC = token('USDC', '2', 6);
const DAI = token('DAI', '3', 18);
const CENT = token('CENT', '4', 2);
const CBBTC = token('cbBTC', '5', 8);
const MEME = token('MEME', '6', 18);

/** Any error: the bounds hold without the setting that leaves out what a curve can't follow. */
const POLICY: KnotPolicy = { maxKnots: 31, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 0 };

function settingOf(
  name: string,
  listed: readonly Listed[],
  rest: Pick<Setting, 'dollar' | 'knots' | 'feeMarket'> & {
    /** Value of a unit of the first market's quote token. */
    quoteValue: bigint;
    /** What everybody has of each token. */
    wealthDollars: bigint;
    orderDollars: bigint;
    minOrderValues?: MinOrderValues;
  },
): Setting {
  const markets = listed.map(({ midTicks: _, ...listing }, index) =>
    createMarket({ ...listing, index, maxTtlSec: 60 }),
  );
  const unitValue = new Map<Address, bigint>([[markets[0]!.quote.address, rest.quoteValue]]);
  // Each market has a token in common with those before it, and is chosen so that the values come out whole.
  markets.forEach(({ base, quote, lotUnits, tickLotUnits }, index) => {
    const ofBase = unitValue.get(base.address);
    const ofQuote = unitValue.get(quote.address);
    const perLot = listed[index]!.midTicks * tickLotUnits;
    if (ofBase === undefined && ofQuote !== undefined) unitValue.set(base.address, exact(ofQuote * perLot, lotUnits));
    else if (ofQuote === undefined && ofBase !== undefined)
      unitValue.set(quote.address, exact(ofBase * lotUnits, perLot));
    else if (ofBase! * lotUnits !== ofQuote! * perLot) throw new Error(`${name}: fair prices don't agree`);
  });
  const { dollar, knots, feeMarket } = rest;
  const valued = { name, markets, midTicks: listed.map(({ midTicks }) => midTicks), unitValue, dollar };
  return {
    ...valued,
    endowment: new Map([...unitValue].map(([address, value]) => [address, (rest.wealthDollars * dollar) / value])),
    sizeLots: markets.map(
      ({ base, lotUnits }) => (rest.orderDollars * dollar) / (unitValue.get(base.address)! * lotUnits),
    ),
    knots,
    feeMarket,
    minOrderUnits: createMinOrderUnits(rest.minOrderValues ?? {}),
  };
}

function exact(dividend: bigint, divisor: bigint): bigint {
  if (dividend % divisor !== 0n) throw new Error('a fair value is not whole');
  return dividend / divisor;
}

/** WETH-USDC and WETH-DAI as the sandbox lists them, at 2,500. */
const weth = settingOf(
  'weth',
  [
    { base: WETH, quote: USDC, lotUnits: 10n ** 14n, tickLotUnits: 1n, midTicks: 250_000n },
    { base: WETH, quote: DAI, lotUnits: 10n ** 14n, tickLotUnits: 10n ** 12n, midTicks: 250_000n },
  ],
  {
    quoteValue: 10n ** 12n,
    dollar: 10n ** 18n,
    wealthDollars: 2_500_000n,
    orderDollars: 1_000n,
    knots: { ...POLICY, maxKnots: 15 },
    feeMarket: 1,
  },
);

/** cbBTC-WETH has as its quote what WETH-USDC has as its base. Few knots. */
const triangle = settingOf(
  'triangle',
  [
    { base: WETH, quote: USDC, lotUnits: 10n ** 14n, tickLotUnits: 1n, midTicks: 250_000n },
    { base: CBBTC, quote: WETH, lotUnits: 1_000n, tickLotUnits: 10n ** 9n, midTicks: 240_000n },
  ],
  {
    quoteValue: 10n ** 12n,
    dollar: 10n ** 18n,
    wealthDollars: 2_500_000n,
    orderDollars: 1_000n,
    knots: { ...POLICY, maxKnots: 7 },
    feeMarket: null,
  },
);

/** Prices of few ticks, lots of few units, quotes that rarely divide evenly: every rounding shows. */
const coarse = settingOf(
  'coarse',
  [
    { base: MEME, quote: CENT, lotUnits: 10n, tickLotUnits: 1n, midTicks: 100n },
    { base: WETH, quote: CENT, lotUnits: 10n, tickLotUnits: 3n, midTicks: 1_000n },
  ],
  {
    quoteValue: 10n ** 6n,
    dollar: 10n ** 8n,
    wealthDollars: 1_000_000n,
    orderDollars: 1_000n,
    knots: POLICY,
    feeMarket: 0,
    minOrderValues: { CENT: '0' },
  },
);

/** A price near the top of the scale, where a quantum of a curve is many subticks. */
const extreme = settingOf(
  'extreme',
  [
    { base: WETH, quote: MEME, lotUnits: 10n ** 14n, tickLotUnits: 1_000n, midTicks: 2n ** 30n },
    { base: MEME, quote: USDC, lotUnits: 10n ** 8n, tickLotUnits: 1n, midTicks: 3n },
  ],
  {
    quoteValue: 3n * 10n ** 11n,
    dollar: 10n ** 25n,
    wealthDollars: 2_500_000n,
    orderDollars: 1_000n,
    knots: POLICY,
    feeMarket: null,
    minOrderValues: { MEME: '0', USDC: '0' },
  },
);

export const SETTINGS: readonly Setting[] = [weth, triangle, coarse, extreme];
export const settingNamed = (name: string): Setting => {
  const found = SETTINGS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no setting ${name}: ${SETTINGS.map((one) => one.name).join(', ')}`);
  return found;
};
