import { expect } from 'chai';
import { candlesOf, withoutGaps, type TradePart } from '../../../core/market-data/candles.js';
import { openOf, type Interval } from '../../../core/market-data/intervals.js';
import { ticksToPrice } from '../../../core/market.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { toColumn } from '../../../ledger/db/columns.js';
import { createMarketFeed, type MarketFeed, type MarketFeedDeps } from '../../../server/stream/market-feed.js';
import type { UpdateListener } from '../../../server/stream/send-queue.js';
import type { Address } from '../../../core/types.js';
import { WETH_DAI, WETH_USDC } from '../../support/markets.js';

const MARKETS = [WETH_USDC, WETH_DAI];

const rowOf = ({ timeMs, market }: { timeMs: number; market: number }) => ({
  ...{ market, generation: 1, tid: 1, side: 'ask', maker: '0x1', taker: '0x2', tx_hash: '0x3' },
  ...{ price_ticks: toColumn(1n), base_units: toColumn(1n), timestamp_ms: timeMs },
});

describe('Market feed', () => {
  let feed: MarketFeed;
  let days: number;
  let candles: number[];
  /** Rows that the database has of the generation that is told next. */
  let rows: { timeMs: number; market: number }[] | null;
  let nowMs: number;
  let parts: TradePart[];
  /** Holds reads of candles up. */
  let gate: Promise<void>;

  beforeEach(() => {
    days = 0;
    candles = [];
    rows = [];
    nowMs = 60_000;
    parts = [];
    gate = Promise.resolve();
    const deps = {
      gateway: {
        markets: () => MARKETS,
        book: () => ({ bestTicks: () => null, levels: () => [] }),
        generation: () => 1,
      },
      marketData: {
        async day() {
          days += 1;
          return { baseUnits: 0n, quoteUnits: 0n, previousTicks: null, lastTicks: null };
        },
        async candles(market: { index: number }, interval: Interval, range: { fromMs: number; limit: number }) {
          candles.push(market.index);
          const all = candlesOf(parts, [interval]);
          const [fromMs, toMs] = [Math.min(...all.map(({ openMs }) => openMs)), openOf(interval, nowMs)];
          await gate;
          return withoutGaps(interval, { fromMs, toMs, closeTicks: null }, all)
            .filter(({ openMs }) => openMs >= openOf(interval, range.fromMs))
            .slice(-range.limit);
        },
        lastTicks: () => null,
      },
      config: { referencePrices: {} },
      clock: () => nowMs,
      db: { reads: { raw: async () => (rows === null ? Promise.reject(new Error('no database')) : rows.map(rowOf)) } },
      limits: { coalesceMs: 1, repeatMs: 60_000 },
      logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
      nextSeq: () => 1,
    };
    feed = createMarketFeed(deps as unknown as MarketFeedDeps);
  });
  afterEach(() => feed.stop());

  function listener() {
    const frames: string[] = [];
    const queue = {
      latest: (_key: string, frame: Buffer) => void frames.push(frame.toString()),
      drop: () => undefined,
    };
    const self = { queue, lost: () => void frames.push('lost') } as unknown as UpdateListener;
    return { frames, self };
  }
  const pause = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const generation = (...markets: number[]): void =>
    feed.onEvent({
      ...{ type: 'generations', from: 1, to: 1, makers: new Set(), accounts: new Set(), changes: [] },
      markets: new Set(markets),
    });

  it('makes the contexts once for all users, who each get their own frame', async () => {
    const { frames, self } = listener();
    const users = Array.from({ length: 50 }, (_, i): Address => `0x${`${i}`.padStart(40, '0')}`);
    for (const user of users) feed.subscribe(`webData2:${user}`, { type: 'webData2', user }, self);
    await pause();
    const once = days;
    expect(once).to.be.at.most(2 * MARKETS.length);
    const told = frames.map((frame) => JSON.parse(frame) as { channel: string; data: { user: string } });
    expect(told.map(({ data }) => data.user)).to.deep.equal(users);
    expect(Object.keys(told[0]!.data)).to.deep.equal(['user', 'spotAssetCtxs', 'meta', 'assetCtxs']);
    // Changes within a second are told together.
    for (let i = 0; i < 5; i += 1) {
      generation(0);
      await pause();
    }
    expect(days).to.equal(once);
    await pause(1_100);
    expect(days).to.equal(2 * once);
  });

  it('reads candles anew only of markets with trades, and of one without any not at all', async () => {
    const { self } = listener();
    for (const market of [0, 1])
      feed.subscribe(`candle:${market}:1m`, { type: 'candle', market, interval: '1m' }, self);
    await pause();
    candles = [];
    generation();
    generation(1);
    await pause();
    expect(candles).to.deep.equal([1]);
    await pause(2_300);
    // The first look at the other one finds that nothing was ever traded.
    expect(candles).to.deep.equal([1, 0]);
  });

  describe('of candles', () => {
    const NOON = Date.UTC(2026, 0, 2, 12);
    const at = (minutes: number, seconds: number): number => NOON + minutes * 60_000 + seconds * 1_000;
    const source = { type: 'candle', market: 0, interval: '1m' } as const;

    /** A trade at this time becomes durable now. */
    function trade(timeMs: number, priceTicks: bigint): void {
      parts.push({ timeMs, priceTicks, baseUnits: 10n ** 18n, quoteUnits: 1n });
      rows = [...(rows ?? []), { timeMs, market: 0 }];
    }
    /** Tells of them. */
    async function told(): Promise<void> {
      generation(0);
      await pause();
      rows = [];
    }
    /** Minute, closing price in ticks, and number of trades of the candles that were sent since the last call. */
    function taken(frames: string[]): [number, string, number][] {
      return frames.splice(0).map((frame) => {
        const { data } = JSON.parse(frame) as { data: { t: number; c: string; n: number } };
        return [(data.t - NOON) / 60_000, data.c, data.n];
      });
    }
    const price = (ticks: bigint): string => withPoint(ticksToPrice(WETH_USDC, ticks));
    const [low, high] = [250_000n, 260_000n];

    async function begin() {
      nowMs = at(0, 30);
      trade(at(0, 10), low);
      const one = listener();
      feed.subscribe('candle:0:1m', source, one.self);
      await pause();
      expect(taken(one.frames)).to.deep.equal([[0, price(low), 1]]);
      rows = [];
      candles = [];
      return one;
    }

    it('sends the last state of one whose last trade becomes durable after its end', async () => {
      const { frames } = await begin();
      nowMs = at(1, 1);
      await pause(1_100);
      expect(taken(frames)).to.deep.equal([[1, price(low), 0]]);
      trade(at(0, 59), high);
      candles = [];
      await told();
      expect(taken(frames)).to.deep.equal([
        [0, price(high), 2],
        [1, price(high), 0],
      ]);
      expect(candles, 'one read').to.deep.equal([0]);
      trade(at(1, 1), high);
      await told();
      expect(taken(frames), 'nothing that was sent before').to.deep.equal([[1, price(high), 1]]);
    });

    it('goes as far back as trades do that come after a standstill', async () => {
      const { frames } = await begin();
      nowMs = at(5, 1);
      trade(at(2, 1), high);
      trade(at(4, 1), low);
      await told();
      expect(taken(frames)).to.deep.equal([
        [2, price(high), 1],
        [3, price(high), 0],
        [4, price(low), 1],
        [5, price(low), 0],
      ]);
      expect(candles).to.deep.equal([0]);
    });

    it('sends whoever subscribes meanwhile nothing older last', async () => {
      const { self } = await begin();
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      const late = listener();
      // Reads the state before the trade, and gets it after that.
      feed.subscribe('candle:0:1m', source, late.self);
      await pause();
      gate = Promise.resolve();
      nowMs = at(1, 1);
      trade(at(0, 59), high);
      await told();
      resolve();
      await pause();
      const last = new Map(taken(late.frames).map(([minute, ...rest]) => [minute, rest]));
      expect([...last]).to.deep.equal([
        [0, [price(high), 2]],
        [1, [price(high), 0]],
      ]);
      feed.unsubscribe('candle:0:1m', self);
    });

    it('gives up connections for which trades can not be read', async () => {
      const { frames } = await begin();
      rows = null;
      generation(0);
      await pause();
      expect(frames).to.include('lost');
    });
  });
});
