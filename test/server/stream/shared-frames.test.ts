import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createBook } from '../../../core/book/create-book.js';
import type { Db } from '../../../ledger/types.js';
import { createBookFeed } from '../../../server/stream/books.js';
import type { SendQueue } from '../../../server/stream/send-queue.js';
import { createUpdateFeed } from '../../../server/stream/updates.js';
import { addressOf } from '../../support/gateway.js';
import { until } from '../../support/gateway-suite.js';
import { WETH_USDC } from '../../support/markets.js';

/** A send queue that keeps the very buffers it was given. */
function createKeeper(): { queue: SendQueue; frames: Buffer[] } {
  const frames: Buffer[] = [];
  const queue: SendQueue = {
    reply: (frame) => void frames.push(frame),
    event: ({ frame }) => void frames.push(frame),
    latest: (_key, frame) => void frames.push(frame),
    drop: () => undefined,
    check: () => undefined,
  };
  return { queue, frames };
}

describe('frames that many connections get', () => {
  const user = addressOf(1);
  const order = {
    oid: 1,
    maker: user,
    market: 0,
    side: 'bid' as const,
    priceTicks: 1_000n,
    sizeLots: 5n,
    filledUnits: 0n,
    tif: 'Gtc' as const,
    cloid: null,
    placedMs: 1,
  };

  it('are serialised once per order update', async () => {
    const gateway = { markets: () => [WETH_USDC], order: () => undefined, ordersOf: () => [], generation: () => 1 };
    const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const feed = createUpdateFeed({ gateway, db: {} as Db, clock: () => 1, logger });
    const subscription = { kind: 'user', type: 'orderUpdates', user, aggregated: false, key: '' } as const;
    const keepers = [createKeeper(), createKeeper(), createKeeper()];
    for (const { queue } of keepers) feed.subscribe(subscription, { queue, lost: () => undefined });
    const known = { order, state: 'open' as const, stateMs: 1 };
    for (let count = 0; count < 2; count += 1) {
      feed.onEvent({ type: 'rows', rows: [], changes: [{ known, timeMs: 1 }], markets: new Set([0]) });
    }
    await until(() => keepers.every(({ frames }) => frames.length === 2));
    const [first, ...others] = keepers.map(({ frames }) => frames);
    for (const frames of others) frames.forEach((frame, index) => expect(frame).to.equal(first?.[index]));
    expect(feed.lastSeq()).to.equal(2);
  });

  it('are serialised once per change of a book', async () => {
    const book = createBook([WETH_USDC]);
    const feed = createBookFeed(
      { book: () => book, markets: () => [WETH_USDC] },
      { coalesceMs: 1, repeatMs: 60_000 },
      () => 1,
    );
    const keepers = [createKeeper(), createKeeper()];
    for (const { queue } of keepers) feed.subscribe('l2Book:@0', { market: 0, by: null }, queue);
    feed.changed(new Set([0]));
    feed.changed(new Set([0]));
    await until(() => keepers.every(({ frames }) => frames.length === 2));
    await delay(20);
    feed.stop();
    expect(keepers.map(({ frames }) => frames.length)).to.deep.equal([2, 2]);
    expect(keepers[0]?.frames[1]).to.equal(keepers[1]?.frames[1]);
  });
});
