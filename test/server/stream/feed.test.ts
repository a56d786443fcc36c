import { expect } from 'chai';
import { createBook } from '../../../core/book/create-book.js';
import { createMarket } from '../../../core/market.js';
import type { Address, OrderLogRow } from '../../../core/types.js';
import { createFeed } from '../../../server/read/feed.js';
import { createSessions } from '../../../server/stream/sessions.js';

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
const [alice, bob] = [address('a'), address('b')];
const token = (symbol: string, digit: string, decimals: number) => ({ symbol, address: address(digit), decimals });
const weth = token('WETH', '1', 18);
const markets = [token('USDC', '2', 6), token('DAI', '3', 6)].map((quote, index) =>
  createMarket({ index, base: weth, quote, lotUnits: 10n ** 14n, tickLotUnits: 1n, maxTtlSec: 60 }),
);

describe('Feed sessions', () => {
  it('opens with an accepted action and ends with the last of its connections', () => {
    const sessions = createSessions();
    expect(sessions.isOpen(alice)).to.equal(false);
    sessions.accepted('one', alice);
    sessions.accepted('one', alice);
    sessions.accepted('two', alice);
    sessions.accepted('two', bob);
    sessions.closed('one');
    expect([sessions.isOpen(alice), sessions.isOpen(bob)]).to.deep.equal([true, true]);
    sessions.closed('two');
    sessions.closed('two');
    expect([sessions.isOpen(alice), sessions.isOpen(bob)]).to.deep.equal([false, false]);
  });
});

describe('Feed freshness', () => {
  function setUp() {
    const book = createBook(markets);
    const sessions = createSessions();
    const actions = new Map<Address, number>();
    let orderSeq = 0;
    const apply = (maker: Address, timeMs: number, effects: OrderLogRow['effects']): void => {
      orderSeq += 1;
      actions.set(maker, timeMs);
      book.apply({ orderSeq, timeMs, maker, signer: maker, nonce: timeMs, kind: 'order', effects });
    };
    const open = (maker: Address, oid: number, market: number, timeMs: number): void =>
      apply(maker, timeMs, [
        { type: 'open', oid, market, side: 'ask', priceTicks: 250_000n, sizeLots: 1n, tif: 'Gtc', cloid: null },
      ]);
    const feed = createFeed({
      book: () => book,
      lastActionMs: (maker) => actions.get(maker) ?? null,
      sessions,
      startedMs: 1_000,
    });
    const ageMs = (market: number): number => 10_000 - feed(market).heardMs;
    return { apply, open, sessions, feed, ageMs };
  }

  it('counts from the newest action of the makers that quote in the market', () => {
    const { apply, open, ageMs } = setUp();
    expect(ageMs(0), 'nobody quotes: since the start').to.equal(9_000);
    open(alice, 1, 0, 4_000);
    open(bob, 2, 1, 7_000);
    expect([ageMs(0), ageMs(1)]).to.deep.equal([6_000, 3_000]);
    apply(alice, 9_500, []);
    expect(ageMs(0), 'an action on any market is a sign of life').to.equal(500);
    apply(alice, 9_900, [{ type: 'close', oid: 1, reason: 'canceled' }]);
    expect(ageMs(0), 'alice quotes no more').to.equal(9_000);
  });

  it('is live only through the session of a maker with standing quotes', () => {
    const { apply, open, sessions, feed } = setUp();
    sessions.accepted('socket', alice);
    expect(feed(0).isLive, 'a session without quotes').to.equal(false);
    open(bob, 1, 0, 2_000);
    expect(feed(0).isLive, 'quotes without a session').to.equal(false);
    open(alice, 2, 0, 3_000);
    expect([feed(0).isLive, feed(1).isLive]).to.deep.equal([true, false]);
    sessions.closed('socket');
    expect(feed(0).isLive).to.equal(false);
    sessions.accepted('socket', alice);
    apply(alice, 4_000, [{ type: 'close', oid: 2, reason: 'canceled' }]);
    expect(feed(0).isLive).to.equal(false);
  });
});
