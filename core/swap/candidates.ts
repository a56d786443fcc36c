/** The sets of sources that a route may consist of, each with a bound of what it can bring. */
import { ceilDiv } from '../amounts.js';
import { conflictsAmong } from './paths.js';
import { RATE_ONE, type Rate, type Source } from './source.js';
import { meetingRootOf, rateOf, type SplitKind } from './split.js';

/** More sources than this are not combined: those that gain least beside the others are left out. */
const MOST_SOURCES = 10;
/** Most units that a source's rounding may add or remove over its ranges. */
const ROUNDED_UNITS = 16n;

/** A set of sources, and a bound of its routes: the most that they bring, or the least that they cost without fee. */
interface Candidate {
  sources: Source[];
  boundUnits: bigint;
}

/**
 * Every set of sources that share no place, with the bound of its routes. For any rate r, the surplus of a source is the most that its
 * output can exceed r times its input. So a set brings at most r times the total input plus its surpluses. At the rate at which all sources
 * meet, that bound is close. `amountOf` is the amount that a set trades, without its fee: of the input (sell) or of the output (buy); null
 * for a set that can't trade.
 */
export function candidatesOf(
  kind: SplitKind,
  sources: readonly Source[],
  amountOf: (set: readonly Source[]) => bigint | null,
): Candidate[] {
  const amounts = sources.map((source) => amountOf([source])).filter((amount) => amount !== null);
  if (amounts.length === 0) return [];
  const most = amounts.reduce((a, b) => (a > b ? a : b));
  // When all sources together have too little depth, any rate gives a valid bound.
  const met = meetingRootOf(kind, sources, most);
  const rate = rateOf(met ?? 1n);
  const ranked = sources
    .map((source, index) => ({ source, index, ...surplusAt(source, rate) }))
    .sort((a, b) => (a.surplus === b.surplus ? a.index - b.index : a.surplus > b.surplus ? -1 : 1))
    .slice(0, MOST_SOURCES)
    .sort((a, b) => a.index - b.index);
  // These sources together trade enough at this rate. A larger set that contains them all would meet at this rate or above, where the other
  // sources trade nothing, so it is skipped.
  const enough = ranked.reduce((bits, { trades }, i) => (trades ? bits | (1 << i) : bits), 0);
  const conflicts = conflictsAmong(ranked.map(({ source }) => source));
  const found: Candidate[] = [];
  for (let members = 1; members < 1 << ranked.length; members++) {
    if (met !== null && members !== enough && (members & enough) === enough) continue;
    if (conflicts.some((others, i) => (members >> i) & 1 && members & others)) continue;
    const set = ranked.filter((_, i) => (members >> i) & 1);
    const chosen = set.map(({ source }) => source);
    const amount = amountOf(chosen);
    if (amount === null) continue;
    const surplus = set.reduce((sum, one) => sum + one.surplus, 0n);
    found.push({ sources: chosen, boundUnits: boundOf(kind, amount, rate.out, surplus) });
  }
  return found;
}

/** Whether a source trades at a rate, and its surplus scaled by RATE_ONE, with a margin for rounding. */
function surplusAt(source: Source, rate: Rate): { trades: boolean; surplus: bigint } {
  const { inUnits, outUnits } = source.tradedAt(rate);
  if (inUnits === 0n && outUnits === 0n) return { trades: false, surplus: 0n };
  const surplus = (outUnits + ROUNDED_UNITS) * RATE_ONE - (inUnits - ROUNDED_UNITS) * rate.out;
  return { trades: true, surplus: surplus > 0n ? surplus : 0n };
}

/** Rounded to whole units: down for a sale, up for a purchase. */
function boundOf(kind: SplitKind, amount: bigint, rate: bigint, surplus: bigint): bigint {
  if (kind === 'sell') return (amount * rate + surplus) / RATE_ONE;
  const paid = amount * RATE_ONE - surplus;
  return paid > 0n ? ceilDiv(paid, rate) : 0n;
}
