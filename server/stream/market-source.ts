/** Public market data that is pushed: what may be subscribed to, and the frame that says how it stands. */
import type { Interval } from '../../core/market-data/intervals.js';
import { openOf } from '../../core/market-data/intervals.js';
import type { Address, Market } from '../../core/types.js';
import { candleRow } from '../market-data/wire.js';
import { bboOf } from '../orders/info/books.js';
import { coinOf } from '../orders/info/markets.js';
import { contextOf, contextsOf } from '../orders/info/market-data.js';
import type { InfoDeps } from '../orders/info/types.js';

export type MarketSource =
  | { type: 'candle'; market: number; interval: Interval }
  | { type: 'bbo'; market: number }
  | { type: 'activeAssetCtx'; market: number }
  | { type: 'spotAssetCtxs' }
  /** What one published client gets its tickers from. */
  | { type: 'webData2'; user: Address };

/** What a push says, without the time of it; null while there is nothing to say. */
export interface State {
  channel: string;
  data: unknown;
  /** Two states with the same text are the same; the time of a push is no part of it. */
  text: string;
  /** A later state does not stand for one with another name: the last one of a candle that is over is not left out. */
  name: string;
}

export type StateDeps = Pick<InfoDeps, 'gateway' | 'marketData' | 'config' | 'clock'>;

/** How a source stands now. */
export async function stateOf(source: MarketSource, deps: StateDeps): Promise<State | null> {
  const state = (channel: string, data: unknown, name = ''): State => ({
    channel,
    data,
    text: JSON.stringify(data),
    name,
  });
  const { gateway, clock } = deps;
  switch (source.type) {
    case 'candle': {
      const market = gateway.markets()[source.market] as Market;
      const nowMs = clock();
      const range = { fromMs: openOf(source.interval, nowMs), toMs: Number.MAX_SAFE_INTEGER, limit: 1 };
      const [candle] = await deps.marketData.candles(market, source.interval, range);
      return candle === undefined ? null : state('candle', candleRow(market, candle), `${candle.openMs}`);
    }
    case 'bbo': {
      const data = bboOf(gateway.markets()[source.market] as Market, gateway, clock());
      return { channel: 'bbo', data, text: JSON.stringify(data.bbo), name: '' };
    }
    case 'activeAssetCtx': {
      const market = gateway.markets()[source.market] as Market;
      return state('activeSpotAssetCtx', { coin: coinOf(market), ctx: await contextOf(market, deps) });
    }
    case 'spotAssetCtxs':
      return state('spotAssetCtxs', await contextsOf(deps));
    case 'webData2': {
      const spotAssetCtxs = await contextsOf(deps);
      return state('webData2', { user: source.user, spotAssetCtxs, meta: { universe: [] }, assetCtxs: [] });
    }
  }
}

/** Whether a change of these markets' books, or of the ledger, may change how a source stands. */
export function mayChange(source: MarketSource, markets: ReadonlySet<number>, isLedger: boolean): boolean {
  if (source.type === 'candle') return isLedger;
  if ('market' in source) return markets.has(source.market) || (isLedger && source.type !== 'bbo');
  return isLedger || markets.size > 0;
}
