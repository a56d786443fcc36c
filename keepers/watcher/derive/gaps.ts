import type { Hex, Market } from '../../../core/types.js';
import { readMarketProgress } from '../../../ledger/chain/ledger-log.js';
import { readPosted } from '../../../ledger/publications/raises.js';
import type { Queryable } from '../../../ledger/types.js';
import type { SeenEvent } from '../scan/scan.js';

/**
 * Whether the contracts' own counters say that an event is missing before or among these: fills of a market are numbered without gaps, and
 * a fill or a touch names the curve that it found, which was posted or touched before. `markets` are those listed before the scan.
 */
export async function hasGap(q: Queryable, events: readonly SeenEvent[], markets: readonly Market[]): Promise<boolean> {
  const fillSeqs = new Map<Hex, number>();
  const curveSeqs = new Map<Hex, number>();
  for (const { event } of events) {
    if (event.type !== 'swap' && event.type !== 'posted' && event.type !== 'touched') continue;
    const id = event.marketId;
    const market = markets.find((one) => one.id === id);
    if (event.type === 'swap') {
      const before = fillSeqs.get(id) ?? (await lastFill(q, market));
      if (event.fillSeq !== before + 1) return true;
      fillSeqs.set(id, event.fillSeq);
    }
    if (event.type !== 'posted') {
      const named = event.type === 'swap' ? event.curveSeq : event.baseSeq;
      const live = curveSeqs.get(id);
      const isKnown = live === undefined ? await wasSeen(q, market, named) : live === named;
      if (!isKnown) return true;
    }
    if (event.type !== 'swap') curveSeqs.set(id, event.seq);
  }
  return false;
}

async function lastFill(q: Queryable, market: Market | undefined): Promise<number> {
  if (market === undefined) return 0;
  return (await readMarketProgress(q, market.index))?.fillSeq ?? 0;
}

async function wasSeen(q: Queryable, market: Market | undefined, seq: number): Promise<boolean> {
  return market !== undefined && (await readPosted(q, market.index, seq)) !== null;
}
