/** What was typed into the two fields, in base units, and what a price says of it. No rounding but where it is named. */
import { AmountError, formatUnits, parseUnits } from '../../../core/amounts.js';
import type { Answer } from '../../../sdk/src/index.js';
import type { Deployment } from '../market-context.js';

export type Token = Deployment['tokens'][number];
export type Price = Answer<'/api/v1/price'>;

/**
 * How a swap is made: by a signature, the service pays the gas out of what is sold; by a transaction of one's own; or by a signature that waits for a
 * price.
 */
export type Mode = 'gasless' | 'direct' | 'limit';

type Entered = { units: bigint; problem: null } | { units: null; problem: string | null };

/** An amount as typed. Nothing typed is no problem; a comma, a sign or too many places is one. Zero is a bound, and no amount to swap. */
export function entered(text: string, token: Token, as: 'amount' | 'bound' = 'amount'): Entered {
  const typed = text.trim();
  if (typed === '') return { units: null, problem: null };
  if (!/^(?:\d+\.?\d*|\.\d+)$/.test(typed)) return { units: null, problem: 'Digits and one point, such as 0.25.' };
  const [whole = '', fraction = ''] = typed.split('.');
  if (fraction.length > token.decimals)
    return { units: null, problem: `${token.symbol} has ${token.decimals} places after the point.` };
  try {
    const plain = `${whole.replace(/^0+(?=\d)/, '') || '0'}${fraction === '' ? '' : `.${fraction}`}`;
    const units = parseUnits(plain, token.decimals);
    return units === 0n && as === 'amount' ? { units: null, problem: null } : { units, problem: null };
  } catch (error) {
    if (error instanceof AmountError) return { units: null, problem: 'This is no amount.' };
    throw error;
  }
}

interface Asked {
  mode: Mode;
  /** What is sold as it is typed, and that for which the prices below were asked; null where it is no amount. */
  units: bigint | null;
  pricedUnits: bigint | null;
  /** What the service and the curve alone would pay; null where that is not known. */
  gasless: bigint | null;
  direct: bigint | null;
  slippageBps: number;
}

interface Offer {
  gaslessUnits: bigint | null;
  buyUnits: bigint | null;
  /** After slippage. */
  least: bigint | null;
}

/** What is got for what is typed: nothing is known while the prices are those of another amount. */
export function offerOf({ mode, units, pricedUnits, gasless, direct, slippageBps }: Asked): Offer {
  const isOwn = units !== null && units === pricedUnits;
  const gaslessUnits = isOwn ? gasless : null;
  const buyUnits = mode !== 'direct' ? gaslessUnits : isOwn ? direct : null;
  const least = buyUnits === null ? null : (buyUnits * BigInt(10_000 - slippageBps)) / 10_000n;
  return { gaslessUnits, buyUnits, least };
}

/** The least that is signed for, and that a copied program takes: a limit, or that of the price. Null without one; zero is none. */
export function boundOf(mode: Mode, limitUnits: bigint | null, least: bigint | null): bigint | null {
  const bound = mode === 'limit' ? limitUnits : least;
  return bound === 0n ? null : bound;
}

/**
 * The least that the client is told to take. For a gasless swap both sides of the quote have a slippage: the price may move by one before it is signed,
 * and by one after; what is signed then is shown with the signature. Nothing else of a direct swap is shown before the wallet asks: it brings what the
 * page says or is not sent.
 */
export function minBuyOf(mode: Mode, bound: bigint, buyUnits: bigint | null): bigint {
  return mode === 'gasless' ? 2n * bound - (buyUnits ?? 0n) : bound;
}

/** Parts of a route in tenths of a percent, cut off, the largest first. */
export function routeShares(route: Price['route']): { source: string; percent: string }[] {
  const total = route.reduce((all, { sellAmount }) => all + BigInt(sellAmount), 0n);
  if (total === 0n) return [];
  return route
    .map(({ source, sellAmount }) => ({ source, permille: (BigInt(sellAmount) * 1_000n) / total }))
    .sort((a, b) => (a.permille < b.permille ? 1 : -1))
    .map(({ source, permille }) => ({ source, percent: formatUnits(permille, 1) }));
}

const RATE_PLACES = 8;

/** How many bought tokens one sold token brings, to eight places, cut off; null where nothing is sold. */
export function rate(sellUnits: bigint, buyUnits: bigint, sell: Token, buy: Token): string | null {
  if (sellUnits === 0n) return null;
  const scaled = (buyUnits * 10n ** BigInt(sell.decimals + RATE_PLACES)) / (sellUnits * 10n ** BigInt(buy.decimals));
  return formatUnits(scaled, RATE_PLACES);
}

type TakerSwap = Answer<'/v0/takers/{address}/swaps'>['swaps'][number];

/** What one transaction brought its taker, and the fills of the curve that it took. */
export interface Taken {
  whole: TakerSwap;
  fills: { pair: string; seq: number }[];
}

/**
 * A signed order is a row of its own beside the fill that a part of it took: those are told as one. Newest first, as they come; direct swaps of one
 * transaction stay apart.
 */
export function takenOf(rows: readonly TakerSwap[]): Taken[] {
  const fillsOf = (some: readonly TakerSwap[]): Taken['fills'] =>
    some.flatMap(({ pair, fill_seq: seq }) => (pair === null || seq === null ? [] : [{ pair, seq }]));
  const signed = new Set(rows.filter(({ kind }) => kind === 'signed').map(({ tx_hash }) => tx_hash));
  return rows
    .filter(({ kind, tx_hash }) => kind === 'signed' || !signed.has(tx_hash))
    .map((whole) => ({
      whole,
      fills: fillsOf(whole.kind === 'signed' ? rows.filter(({ tx_hash }) => tx_hash === whole.tx_hash) : [whole]),
    }));
}

/** Parts in a hundred of a time that are left, for the ring; 0 once it is over. */
export function percentLeft(nowMs: number, sinceMs: number, untilMs: number): number {
  if (untilMs <= sinceMs) return 0;
  return Math.max(0, Math.min(100, Math.round(((untilMs - nowMs) * 100) / (untilMs - sinceMs))));
}
