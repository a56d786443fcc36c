/** Signing orders costs a maker nothing, so that no ratio to its gas can bound what posts of them cost: the number of posts does. */
import { expect } from 'chai';
import type { Address, MarketSnapshot } from '../../core/types.js';
import { mayWait } from '../../keepers/poster/small.js';
import type { MarketView, PosterView } from '../../keepers/poster/view.js';
import { WETH_USDC } from '../support/markets.js';

const GRIEFER: Address = `0x${'9'.repeat(40)}`;
const BLOCK_MS = 2_000;
const INTERVAL_MS = 6_000;
const DAY_MS = 24 * 3_600_000;
/** A full post of 15 knots a side over other words, the dearest that `npm run bench:gas` measures beside late fills. */
const POST_GAS = 86_000n;

/** What makers do before a block: the orders there then, for when their scheduled cancel is armed, and whose orders elsewhere are trimmed. */
type Move = (
  posted: MarketSnapshot,
  nowMs: number,
) => { next: MarketSnapshot; armedMs: number | null; trimmed?: ReadonlySet<Address> };

const bookOf = (oid: number | null): MarketSnapshot => ({
  market: 0,
  fillSeq: 0,
  askVolumeUnits: 0n,
  bidVolumeUnits: 0n,
  // Worth ten cents at 3,000.
  asks: oid === null ? [] : [{ oid, maker: GRIEFER, priceTicks: 300_000n + BigInt(oid % 7), sizeLots: 1n }],
  bids: [],
});

/** Posts of a day on a market where nothing else happens, each mined in the next block. */
function postsOfDay(move: Move, quoteUnits: bigint, intervalMs = INTERVAL_MS): number {
  let posted = bookOf(null);
  let cutMs = 0;
  let posts = 0;
  for (let nowMs = BLOCK_MS; nowMs <= DAY_MS; nowMs += BLOCK_MS) {
    const { next, armedMs, trimmed = new Set<Address>() } = move(posted, nowMs);
    const view = {
      cut: { orderSeq: 1, generation: 1, timeMs: nowMs },
      operator: { suspended: new Set() },
      armed: () => armedMs,
      triggeredSeq: () => 0,
    } as unknown as PosterView;
    const last = {
      snapshot: posted,
      publication: { cut: { orderSeq: 1, generation: 1, timeMs: cutMs }, deadlineSec: cutMs / 1_000 + 12 },
    };
    const market = { market: WETH_USDC, last } as unknown as MarketView;
    const small = { quoteUnits: () => quoteUnits, intervalMs };
    const isSame = JSON.stringify(next.asks, named) === JSON.stringify(posted.asks, named);
    if (isSame || mayWait(view, market, next, small, trimmed)) continue;
    posted = next;
    cutMs = nowMs;
    posts += 1;
  }
  return posts;
}

const named = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}` : value);

describe('posts of small changes alone', () => {
  const small = 100_000_000n;
  let oid = 0;
  const movesAlways: Move = () => ({ next: bookOf((oid += 1)), armedMs: null });
  /** Has its order go while its scheduled cancel is due within 4 s, which no cut may wait for, and puts another. */
  const armsAlways: Move = (posted, nowMs) => ({
    next: bookOf(posted.asks.length > 0 ? null : (oid += 1)),
    armedMs: nowMs + 3_900,
  });

  const nine = Array.from({ length: 9 }, (_, at): Address => `0x${String(at + 1).repeat(40)}`);
  /**
   * Nine makers who own what one order of the least value pays, 10 USDC. Each block one of them moves it to another market or back, so that
   * the curve that still offers it trims what it has elsewhere.
   */
  const takeTurns = (): Move => {
    const here = new Map(nine.map((maker, at) => [maker, at % 2 === 0]));
    const order = (maker: Address) => ({ oid: 1 + nine.indexOf(maker), maker, priceTicks: 300_000n, sizeLots: 34n });
    return (posted, nowMs) => {
      const mover = nine[(nowMs / BLOCK_MS) % nine.length]!;
      here.set(mover, here.get(mover) !== true);
      const asks = nine.filter((maker) => here.get(maker) === true).map(order);
      const offered = new Set(posted.asks.map(({ maker }) => maker));
      const trimmed = new Set(nine.filter((maker) => here.get(maker) !== true && offered.has(maker)));
      return { next: { ...bookOf(null), asks }, armedMs: null, trimmed };
    };
  };

  const say = (posts: number): void =>
    console.log(
      `      ${posts} posts a day and market, ${BigInt(posts) * POST_GAS} gas of the operator, none of the maker`,
    );

  it('are one in an interval, however often a lot moves', () => {
    const posts = postsOfDay(movesAlways, small);
    say(posts);
    expect(posts)
      .to.be.at.most(DAY_MS / INTERVAL_MS)
      .and.at.least(DAY_MS / INTERVAL_MS - 1);
    expect(postsOfDay(movesAlways, 0n), 'were nothing small').to.equal(DAY_MS / BLOCK_MS);
  });

  it('are two in an interval for a maker who arms scheduled cancels and moves them on', () => {
    const posts = postsOfDay(armsAlways, small);
    say(posts);
    expect(posts).to.be.at.most((2 * DAY_MS) / INTERVAL_MS);
    expect(postsOfDay(armsAlways, 0n), 'were nothing small').to.equal(DAY_MS / BLOCK_MS);
  });

  it('are one in an interval for all makers together, though each is trimmed when its turn has come to move an order', () => {
    const posts = postsOfDay(takeTurns(), small);
    say(posts);
    expect(posts).to.be.at.most(DAY_MS / INTERVAL_MS);
    expect(postsOfDay(takeTurns(), small, 2 * INTERVAL_MS), 'in a longer interval').to.be.at.most(DAY_MS / INTERVAL_MS);
    expect(postsOfDay(takeTurns(), 0n), 'were nothing small').to.equal(DAY_MS / BLOCK_MS);
  });
});
