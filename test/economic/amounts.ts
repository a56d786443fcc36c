/** How much a taker means by an amount, as everybody can compute from public data. */
import { depthUnits, remaining } from '../../core/curve/walk.js';
import { snapshotSide } from '../../core/snapshot.js';
import type { Segment, Side } from '../../core/types.js';
import type { WorldEvent } from './calls.js';
import type { WorldChain } from './chain.js';
import { costliest } from './costliest.js';
import type { WorldLedger } from './ledger.js';
import type { Setting } from './setting.js';
import type { Amount } from './steps.js';

interface Measures {
  segmentsOf(market: number, side: Side): readonly Segment[];
  takenOf(market: number, side: Side): bigint;
  /** Base units of an amount. */
  baseUnits(market: number, side: Side, amount: Amount): bigint;
}

/** `unscanned` is what happened since the last scan. */
export function createMeasures(
  { markets }: Setting,
  chain: WorldChain,
  ledger: WorldLedger,
  unscanned: () => WorldEvent[],
): Measures {
  const segmentsOf = (market: number, side: Side): readonly Segment[] =>
    side === 'ask' ? chain.markets[market]!.asks : chain.markets[market]!.bids;
  const takenOf = (market: number, side: Side): bigint =>
    side === 'ask' ? chain.consumed(market).askUnits : chain.consumed(market).bidUnits;

  /** Base units that a taker means by an amount. */
  function baseUnits(market: number, side: Side, amount: Amount): bigint {
    const left = chain.depthLeft(market, side);
    const segments = segmentsOf(market, side);
    const taken = takenOf(market, side);
    switch (amount.kind) {
      case 'permille':
        return (left * BigInt(amount.of)) / 1_000n;
      case 'units':
        return BigInt(amount.units);
      case 'knot': {
        const end = depthUnits(segments.slice(0, 1 + (amount.index % Math.max(1, segments.length))));
        return (end > taken ? end - taken : end) + BigInt(amount.more);
      }
      case 'order': {
        const live = ledger.curve(market, chain.markets[market]!.seq);
        const orders = live === undefined ? [] : snapshotSide(live.snapshot, side);
        const order = orders[amount.index % Math.max(1, orders.length)];
        return (order === undefined ? 0n : order.sizeLots * markets[market]!.lotUnits) + BigInt(amount.more);
      }
      case 'worst': {
        const state = ledger.peek(unscanned(), market, chain.markets[market]!.seq, side);
        return state === null || left === 0n ? 0n : costliest(side, remaining(segments, taken), state).units;
      }
    }
  }

  return { segmentsOf, takenOf, baseUnits };
}
