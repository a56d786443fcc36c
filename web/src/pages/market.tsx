import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { CandleChart } from '../charts/candle-chart.js';
import { DepthChart } from '../charts/depth-chart.js';
import { coinOf, newestFills, useShown } from '../market-context.js';
import type { Book, CurveState } from '../market-context.js';
import { useOpenOrders } from '../maker/open-orders.js';
import { basisPoints, exact, middle, onGrid, shown, text } from '../numbers.js';
import { useRead, useStream } from '../platform.js';
import { offBook } from '../sums.js';
import { Reversed } from '../reversed.js';
import { Age, Countdown } from '../states.js';
import { useWallets } from '../wallet/session.js';
import { FillTable } from './overview.js';

/** The market: its book as steps, the posted curve over it, and what was traded. */
export function MarketPage() {
  const { market, base, quote } = useShown();
  const book = useStream({ type: 'l2Book', coin: coinOf(market) }, (_state: Book | null, data) => data);
  const live = useStream({ type: 'curves', pair: market.pair }, (_state: CurveState | null, data) => data);
  const fills = useStream({ type: 'fills', pair: market.pair }, newestFills);
  const seq = live.data?.state === 'live' ? live.data.curve_seq : null;
  const curve = useRead(seq === null ? null : `${market.pair}/${seq}`, (read) => read.curve(market.pair, seq ?? 0));
  const [bids = [], asks = []] = book.data?.levels ?? [];
  const best = { bid: bids[0]?.px ?? null, ask: asks[0]?.px ?? null };
  const { session } = useWallets();
  const open = useOpenOrders(session?.address ?? null)?.open;
  const mine = new Set(
    [...(open?.values() ?? [])]
      .filter(({ coin }) => coin === coinOf(market))
      .map(({ limitPx }) => text(exact(limitPx))),
  );
  const isEmpty = book.data !== null && bids.length + asks.length === 0;
  const sides = useMemo(() => ({ bids, asks }), [book.data]);
  const prepared = curve.data?.prepared ?? null;
  const taken = {
    asks: seq === null ? '0' : (live.data?.consumed_ask ?? '0'),
    bids: seq === null ? '0' : (live.data?.consumed_bid ?? '0'),
  };
  const off = (side: 'bids' | 'asks', levels: readonly Level[]): string =>
    shown(
      offBook(
        prepared?.[side] ?? [],
        levels.map(({ px, sz }) => ({ price: px, size: sz })),
        side,
      ) ?? '–',
    );
  return (
    <>
      <h1>{market.pair}</h1>
      <dl className="facts">
        <Fact name="Mid">{best.bid !== null && best.ask !== null ? shown(middle(best.bid, best.ask)) : '–'}</Fact>
        <Fact name="Spread">
          {best.bid !== null && best.ask !== null ? `${basisPoints(best.bid, best.ask)} bps` : '–'}
        </Fact>
        <Fact name="Tick">{market.tick_size}</Fact>
        <Fact name="Lot">{market.lot_size}</Fact>
        <Fact name="Curve">
          {live.data === null || live.data.curve_seq === null ? 'none' : `#${live.data.curve_seq}, ${live.data.state}`}
        </Fact>
        <Fact name="Ends in">
          {live.data?.state === 'live' && live.data.deadline_sec !== null ? (
            <Countdown untilSec={live.data.deadline_sec} />
          ) : (
            '–'
          )}
        </Fact>
        <Fact name="Cut">
          {curve.data?.prepared ? (
            <>
              <Age sinceMs={curve.data.prepared.cut.time_ms} /> ago
            </>
          ) : (
            '–'
          )}
        </Fact>
        <Fact name="Taken of it">
          {seq === null
            ? '–'
            : taken.asks === '0' && taken.bids === '0'
              ? 'nothing'
              : `${shown(taken.asks, 4)} of asks, ${shown(taken.bids, 4)} of bids, in ${base}`}
        </Fact>
        <Fact name="Error at worst, in bps">
          {prepared === null || prepared.ask_error_bps === null || prepared.bid_error_bps === null
            ? '–'
            : `asks ${shown(prepared.ask_error_bps, 2)}, bids ${shown(prepared.bid_error_bps, 2)}`}
        </Fact>
        <Fact name="Off the book, in bps">
          {prepared === null ? '–' : `asks ${off('asks', asks)}, bids ${off('bids', bids)}`}
        </Fact>
      </dl>
      {book.data === null ? (
        <p role="status" className="chart blank">
          Loading the book …
        </p>
      ) : isEmpty && prepared === null ? (
        <p role="status" className="chart blank">
          The book is empty: no maker quotes here now.
        </p>
      ) : (
        <DepthChart sides={sides} curve={prepared} taken={taken} base={base} quote={quote} />
      )}
      <p className="caption">
        {isEmpty && prepared !== null && 'The book is empty at the moment. '}
        Steps: the book now (at most 20 prices a side). Lines: the curve that takers trade against, cut from the book of{' '}
        {prepared ? <Age sinceMs={prepared.cut.time_ms} /> : 'a moment'} ago. Shaded: what is gone of it, by swaps or
        when it was posted over earlier ones. Off the book: how much worse than by the book now a taker of all of it is
        served.
      </p>
      <h2>Book</h2>
      <div className="book">
        <Levels name="Bids" levels={bids} mine={mine} />
        <Levels name="Asks" levels={asks} mine={mine} />
      </div>
      <Candles />
      <h2>Trades</h2>
      <Reversed />
      <FillTable fills={fills.data} />
    </>
  );
}

const INTERVALS = [
  ['1m', 60_000],
  ['5m', 300_000],
  ['1h', 3_600_000],
] as const;
const MAX_CANDLES = 90;

/** Prices per interval, from the fills of the curve. */
function Candles() {
  const { market, quote } = useShown();
  const [interval, setInterval] = useState<(typeof INTERVALS)[number]>(INTERVALS[0]);
  const [name, lengthMs] = interval;
  const candles = useRead(
    `candles/${market.pair}/${name}`,
    (read) =>
      read.get('/v0/candles/{pair}', {
        path: { pair: market.pair },
        query: { interval: name, from: Date.now() - MAX_CANDLES * lengthMs },
      }),
    3_000,
  );
  return (
    <section aria-label="Candles">
      <div className="row">
        <h2>Candles</h2>
        {INTERVALS.map((one) => (
          <button type="button" key={one[0]} aria-pressed={one === interval} onClick={() => setInterval(one)}>
            {one[0]}
          </button>
        ))}
      </div>
      {candles.data === null ? (
        <p role="status">{candles.error ?? 'Loading candles …'}</p>
      ) : candles.data.candles.length === 0 ? (
        <p role="status">No trade yet: candles begin with the first one.</p>
      ) : (
        <CandleChart candles={candles.data.candles.slice(-MAX_CANDLES)} quote={quote} />
      )}
    </section>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

interface Level {
  px: string;
  sz: string;
  n: number;
}

interface LevelsProps {
  name: string;
  levels: readonly Level[];
  /** Prices of whoever acts. */
  mine: ReadonlySet<string>;
}

function Levels({ name, levels, mine }: LevelsProps) {
  const { market } = useShown();
  const side = name === 'Bids' ? 'buy' : 'sell';
  return (
    <table>
      <caption>{name}</caption>
      <thead>
        <tr>
          <th scope="col" className="number">
            Price
          </th>
          <th scope="col" className="number">
            Size
          </th>
          <th scope="col" className="number">
            Orders
          </th>
        </tr>
      </thead>
      <tbody>
        {levels.slice(0, 10).map(({ px, sz, n }) => (
          <tr key={px}>
            <td className={`number ${side}`}>
              {mine.has(text(exact(px))) && (
                <span role="img" aria-label="an order of yours" title="an order of yours">
                  ◆{' '}
                </span>
              )}
              <Link
                href={`/maker/${encodeURIComponent(market.pair)}?side=${side}&price=${px}`}
                title={`quote at ${px}, too`}
              >
                {onGrid(px, market.tick_size)}
              </Link>
            </td>
            <td className="number">{onGrid(sz, market.lot_size)}</td>
            <td className="number">{n}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
