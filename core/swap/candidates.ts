/** Which sources a route may be made of, the most promising sets first. */
import { ceilDiv } from '../amounts.js';
import type { Source } from './source.js';
import { meetingRateOf, RATE_ONE, type SplitKind } from './split.js';

/** More sources than this are not combined: those that gain least beside the others are left out. */
const MOST_SOURCES = 10;
/** What walking through the ranges of a source may round off, either way. */
const ROUNDED_UNITS = 16n;

/** A set of sources, and what no route over it can better: the most that it brings, or the least that it costs without fee. */
interface Candidate {
  sources: Source[];
  boundUnits: bigint;
}

/**
 * Every set of the sources with the bound of its routes. At any one rate, what a source brings is at most that rate of its input and its surplus, which is
 * the most that it gains over the rate; so a set brings at most the rate of all that goes in and the surpluses together. At the rate at which
 * all sources meet, that is close. `amountOf` is what a set trades, without its fee: of the input (sell) or of the output (buy); null for a set that can't.
 */
export function candidatesOf(
  kind: SplitKind,
  sources: readonly Source[],
  amountOf: (set: readonly Source[]) => bigint | null,
): Candidate[] {
  const amounts = sources.map((source) => amountOf([source])).filter((amount) => amount !== null);
  if (amounts.length === 0) return [];
  const most = amounts.reduce((a, b) => (a > b ? a : b));
  // Where all of them together have too little, any rate bounds them.
  const met = meetingRateOf(kind, sources, most);
  const rate = met ?? 1n;
  const ranked = sources
    .map((source, index) => ({ source, index, ...surplusAt(source, rate) }))
    .sort((a, b) => (a.surplus === b.surplus ? a.index - b.index : a.surplus > b.surplus ? -1 : 1))
    .slice(0, MOST_SOURCES)
    .sort((a, b) => a.index - b.index);
  // At this rate these have enough, so that a set that holds them all meets at it or above, where the others trade nothing.
  const enough = ranked.reduce((bits, { trades }, i) => (trades ? bits | (1 << i) : bits), 0);
  const found: Candidate[] = [];
  for (let members = 1; members < 1 << ranked.length; members++) {
    if (met !== null && members !== enough && (members & enough) === enough) continue;
    const set = ranked.filter((_, i) => (members >> i) & 1);
    const chosen = set.map(({ source }) => source);
    const amount = amountOf(chosen);
    if (amount === null) continue;
    const surplus = set.reduce((sum, one) => sum + one.surplus, 0n);
    found.push({ sources: chosen, boundUnits: boundOf(kind, amount, rate, surplus) });
  }
  return found;
}

/** Whether a source trades at a rate, and its surplus scaled by RATE_ONE, with room for what it rounds. */
function surplusAt(source: Source, rate: bigint): { trades: boolean; surplus: bigint } {
  const { inUnits, outUnits } = source.tradedAt({ out: rate, in: RATE_ONE });
  if (inUnits === 0n && outUnits === 0n) return { trades: false, surplus: 0n };
  const surplus = (outUnits + ROUNDED_UNITS) * RATE_ONE - (inUnits - ROUNDED_UNITS) * rate;
  return { trades: true, surplus: surplus > 0n ? surplus : 0n };
}

/** Amounts are whole: of a sale rounded down, of a purchase rounded up. */
function boundOf(kind: SplitKind, amount: bigint, rate: bigint, surplus: bigint): bigint {
  if (kind === 'sell') return (amount * rate + surplus) / RATE_ONE;
  const paid = amount * RATE_ONE - surplus;
  return paid > 0n ? ceilDiv(paid, rate) : 0n;
}
