import { expect } from 'chai';
import { createMarketFeed, type MarketFeed, type MarketFeedDeps } from '../../../server/stream/market-feed.js';
import type { UpdateListener } from '../../../server/stream/send-queue.js';
import type { Address } from '../../../core/types.js';
import { WETH_DAI, WETH_USDC } from '../../support/markets.js';

const MARKETS = [WETH_USDC, WETH_DAI];

describe('Market feed', () => {
  let feed: MarketFeed;
  let days: number;
  let candles: number[];

  beforeEach(() => {
    days = 0;
    candles = [];
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
        async candles(market: { index: number }) {
          candles.push(market.index);
          return [];
        },
        lastTicks: () => null,
      },
      config: { referencePrices: {} },
      clock: () => 60_000,
      db: {},
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
    return { frames, self: { queue, lost: () => undefined } as unknown as UpdateListener };
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
});
