/** What a book and the segments of a curve ask for the same lots. */
import fc from 'fast-check';
import type { Segment } from '../../../core/types.js';
import { WETH_USDC } from '../markets.js';

export const LOT = WETH_USDC.lotUnits;
export const knotCounts = fc.constantFrom(1, 2, 3, 7, 15, 31);

/** Cost of the first `lots` in subticks x lots; prices are in subticks. */
export function costOf(pieces: readonly { lots: bigint; price: bigint }[], lots: bigint): bigint {
  let cost = 0n;
  let left = lots;
  for (const piece of pieces) {
    const taken = left < piece.lots ? left : piece.lots;
    cost += taken * piece.price;
    left -= taken;
  }
  return cost;
}
export const ofSegments = (segments: readonly Segment[], lotUnits = LOT) =>
  segments.map(({ lengthUnits, subticks }) => ({ lots: lengthUnits / lotUnits, price: subticks }));
export const ends = (pieces: readonly { lots: bigint }[]): bigint[] => {
  let sum = 0n;
  return pieces.map(({ lots }) => (sum += lots));
};
