/** Says once when posting for a pair stops, and when orders of one begin to cross. */
import type { Logger } from 'pino';
import type { Market } from '../../core/types.js';
import { BELOW_FLOOR, NO_FREE_NUMBER, TOKEN_QUARANTINED, type Prepared } from './prepare.js';

/** Reasons that stop single markets only. */
const STOPS: readonly string[] = [BELOW_FLOOR, TOKEN_QUARANTINED, NO_FREE_NUMBER];

interface Notices {
  /** Says so when posting stops for a market, and when it goes on. */
  noteSkipped(skipped: Prepared['skipped']): void;
  /** Says so when something begins to cross; how much does, the status says. */
  noteCrossing(found: Prepared['crossing']): void;
  /** Pairs that stopped for a reason. */
  stopped(reason: string): string[];
  /** Orders that the newest cut left out because they cross larger ones. */
  crossing(): { pair: string; orders: number }[];
}

export function createNotices(markets: readonly Market[], logger: Logger): Notices {
  /** Pairs that are stopped, with why. */
  let stopped = new Map<string, string>();
  /** Of the newest cut, by market. */
  const crossing = new Map<number, number>();

  return {
    noteSkipped(skipped) {
      const now = new Map(
        skipped.filter(({ reason }) => STOPS.includes(reason)).map(({ market, reason }) => [market.pair, reason]),
      );
      for (const [pair, reason] of now) {
        if (stopped.get(pair) !== reason) logger.error({ pair, reason }, 'posting stops for a pair');
      }
      for (const pair of stopped.keys()) if (!now.has(pair)) logger.info({ pair }, 'posting for a pair again');
      stopped = now;
    },
    noteCrossing(found) {
      for (const { market, orders } of found) {
        const before = crossing.get(market.index) ?? 0;
        crossing.set(market.index, orders);
        if (before === 0 && orders > 0) {
          logger.info({ pair: market.pair, orders }, 'left out orders that cross larger ones');
        }
      }
    },
    stopped: (reason) => [...stopped].filter(([, why]) => why === reason).map(([pair]) => pair),
    crossing: () => [...crossing].map(([market, orders]) => ({ pair: markets[market]?.pair ?? `${market}`, orders })),
  };
}
