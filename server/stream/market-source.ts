/** Public market data that is pushed: its sources, and the frame of a source's state. */
import type { Interval } from '../../core/market-data/intervals.js';
import { openOf } from '../../core/market-data/intervals.js';
import type { Address, Market } from '../../core/types.js';
import { candleRow } from '../market-data/wire.js';
import { bboOf } from '../orders/info/books.js';
import { coinOf } from '../orders/info/markets.js';
import { contextOf, contextsOf } from '../orders/info/market-data.js';
import type { InfoDeps } from '../orders/info/types.js';
import { channelFrame } from './send-queue.js';

export type MarketSource =
  | { type: 'candle'; market: number; interval: Interval }
  | { type: 'bbo'; market: number }
  | { type: 'activeAssetCtx'; market: number }
  | { type: 'spotAssetCtxs' }
  /** One published client gets its tickers from this type. */
  | { type: 'webData2'; user: Address };

/** Content of a push without its time. */
export interface State {
  frame: () => Buffer;
  /** Two states with the same text are the same; the time of a push is no part of it. */
  text: string;
  /** A later state replaces only a waiting one of the same name, so that the last state of an ended candle is sent. */
  name: string;
  /** When what it tells of began; null for the present. */
  fromMs: number | null;
}

/** Most states of a source at a time: candles further back are not sent again. */
export const MAX_STATES = 500;

export type StateDeps = Pick<InfoDeps, 'gateway' | 'marketData' | 'config' | 'clock'>;

/** Contexts of all markets, serialised. */
export interface SharedContexts {
  text: string;
  frame: Buffer;
  /** The part after the user in a frame of `webData2`. */
  tail: Buffer;
}

/** Serialises the contexts, which are the same for all users. */
export async function sharedContexts(deps: StateDeps): Promise<SharedContexts> {
  const contexts = await contextsOf(deps);
  const tail = JSON.stringify({ spotAssetCtxs: contexts, meta: { universe: [] }, assetCtxs: [] });
  return {
    text: JSON.stringify(contexts),
    frame: channelFrame('spotAssetCtxs', contexts),
    tail: Buffer.from(`,${tail.slice(1)}}`),
  };
}

/**
 * The present state of a source, after those from `sinceMs` on if it is not null; none while there is nothing to push. `contexts` must be
 * the present ones.
 */
export async function statesOf(
  source: MarketSource,
  deps: StateDeps,
  contexts: () => Promise<SharedContexts>,
  sinceMs: number | null,
): Promise<State[]> {
  const present = { name: '', fromMs: null };
  const state = (channel: string, data: unknown, of: Pick<State, 'name' | 'fromMs'> = present): State => ({
    frame: () => channelFrame(channel, data),
    text: JSON.stringify(data),
    ...of,
  });
  const { gateway, clock } = deps;
  switch (source.type) {
    case 'candle': {
      const market = gateway.markets()[source.market] as Market;
      const openMs = openOf(source.interval, clock());
      const range =
        sinceMs === null ? { fromMs: openMs, limit: 1 } : { fromMs: Math.min(sinceMs, openMs), limit: MAX_STATES };
      const candles = await deps.marketData.candles(market, source.interval, {
        ...range,
        toMs: Number.MAX_SAFE_INTEGER,
      });
      return candles.map((candle) =>
        state('candle', candleRow(market, candle), { name: `${candle.openMs}`, fromMs: candle.openMs }),
      );
    }
    case 'bbo': {
      const data = bboOf(gateway.markets()[source.market] as Market, gateway, clock());
      return [{ ...present, frame: () => channelFrame('bbo', data), text: JSON.stringify(data.bbo) }];
    }
    case 'activeAssetCtx': {
      const market = gateway.markets()[source.market] as Market;
      return [state('activeSpotAssetCtx', { coin: coinOf(market), ctx: await contextOf(market, deps) })];
    }
    case 'spotAssetCtxs': {
      const { text, frame } = await contexts();
      return [{ ...present, frame: () => frame, text }];
    }
    case 'webData2': {
      const { text, tail } = await contexts();
      const head = `{"channel":"webData2","data":{"user":"${source.user}"`;
      return [{ ...present, frame: () => Buffer.concat([Buffer.from(head), tail]), text }];
    }
  }
}

/** What changed: books of markets, and the ledger, in which markets of it had trades. */
interface Changes {
  markets: ReadonlySet<number>;
  traded: ReadonlySet<number>;
  isLedger: boolean;
}

/** Whether these changes may change a source's state. */
export function mayChange(source: MarketSource, { markets, traded, isLedger }: Changes): boolean {
  if (source.type === 'candle') return traded.has(source.market);
  if ('market' in source) return markets.has(source.market) || (isLedger && source.type !== 'bbo');
  return isLedger || markets.size > 0;
}
