/** What the API says of makers, takers and markets is what an independent program counts from decompositions, curves and the order log. */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import type { z } from 'zod';
import { INTERVALS } from '../../../core/market-data/intervals.js';
import { candlesSchema } from '../../../server/read/candles.js';
import { performanceSchema } from '../../../server/read/accounts/performance.js';
import { takerSummarySchema } from '../../../server/read/accounts/taker-summary.js';
import { forEachDatabase, isOneEnough } from '../../support/db.js';
import { MARKETS } from '../../support/ledger-log.js';
import { slowCandles, slowNext, slowTrades } from '../../support/api/market-data.js';
import {
  averageCost,
  exactDecimal,
  hear,
  parsedRows,
  slowBooks,
  slowMaker,
  slowTaker,
  unitsOf,
  type Heard,
  type ParsedRow,
  type StoredOrderRow,
} from '../../support/nodes/slow-accounts.js';
import { plain, slowTicker, slowUserFills } from '../../support/nodes/slow-tickers.js';
import { post, startGateway } from '../../support/gateway.js';
import { activityOf, DAY_MS, HOUR_MS } from '../../support/api/activity.js';

/** `npm run test:deep` takes ten thousand; FILLS chooses otherwise. */
const FILLS = Number.parseInt(process.env.FILLS ?? '', 10) || (isOneEnough() ? 300 : 10_000);

describe('accounts', () => {
  forEachDatabase((_name, open) => {
    const suite = activityOf(open);
    const { seed, verify, agent, trade } = suite;

    /** A resource as it comes: tens of thousands of them are not held against the OpenAPI document, as those that tests fetch are. */
    async function get(path: string): Promise<{ status: number; body: unknown }> {
      const [response] = (await once(request(`${suite.server.url}${path}`, { agent }).end(), 'response')) as [
        IncomingMessage,
      ];
      return { status: response.statusCode ?? 0, body: await json(response) };
    }

    it('are what an independent program counts, to the unit, through reversals', async function () {
      this.timeout(FILLS * 600);
      await trade(FILLS);
      const heard = await Promise.all(MARKETS.map((market) => hear(get, market)));
      expect(heard.reduce((sum, { fills }) => sum + fills.length, 0)).to.be.greaterThan(FILLS / 3);
      const rows = parsedRows(await suite.db.knex('order_log').orderBy('order_seq').select<StoredOrderRow[]>());
      await compareWire(heard, rows);
      let moved = 0;
      for (const one of heard) {
        await compareCandles(one);
        const books = slowBooks(one, rows);
        for (const maker of suite.world.makers) await compareMaker(one, books, maker);
        for (const maker of suite.world.makers) moved += await comparePast(one, maker);
        for (const taker of suite.world.takers) await compareTaker(one, taker);
      }
      const isLonger = heard.some(({ fills }) => hourOf(fills.at(-1)!) > hourOf(fills[0]!));
      if (isLonger) expect(moved, 'positions that went on after the first hour').to.be.greaterThan(0);
      // One sum per taker and market at least, and those of makers beside them.
      const takers = new Set(
        heard.flatMap(({ market, fills }) => fills.map(({ taker }) => `${market.index} ${taker}`)),
      );
      expect(await verify()).to.be.greaterThan(takers.size);
    });

    /** All candles of a market since its first trade, a page of the newest after the other. */
    async function candlesOf(pair: string, interval: string) {
      const found: z.infer<typeof candlesSchema>['candles'] = [];
      for (let to = ''; ;) {
        const { body } = await suite.server.get(`/v0/candles/${pair}?interval=${interval}${to}`);
        const { candles } = candlesSchema.parse(body);
        if (candles.length === 0) return found;
        found.unshift(...candles);
        to = `&to=${candles[0]!.open_ms - 1}`;
      }
    }

    async function compareCandles({ market, fills }: Heard): Promise<void> {
      const slow = slowCandles(fills.flatMap((fill) => slowTrades(market, fill)));
      for (const interval of INTERVALS) {
        const candles = await candlesOf(market.pair, interval);
        const ticks = (price: string): bigint => unitsOf(price, 8) / unitsOf(market.tickSize, 8);
        const traded = candles.filter(({ trades }) => trades > 0);
        const found = traded.map((one) => [
          `${interval}:${one.open_ms}`,
          [
            ...[one.open, one.high, one.low, one.close].map(ticks),
            unitsOf(one.base_volume, market.base.decimals),
            unitsOf(one.quote_volume, market.quote.decimals),
            one.trades,
          ].join(' '),
        ]);
        const due = [...slow].filter(([key]) => key.startsWith(`${interval}:`));
        expect(Object.fromEntries(found), `${interval} of ${market.pair}, seed ${seed}`).to.deep.equal(
          Object.fromEntries(due),
        );
        // Where nothing was traded stands one at the price before it.
        for (const [i, one] of candles.entries()) {
          const before = candles[i - 1];
          if (before !== undefined) expect(one.open_ms).to.equal(slowNext(interval, before.open_ms));
          const { open, high, low, close, base_volume: base, quote_volume: quote } = one;
          if (one.trades === 0)
            expect([open, high, low, close, base, quote]).to.deep.equal([...Array(4).fill(before?.close), '0', '0']);
        }
      }
    }

    /** Tickers, and profits of fills, as the exchange wire has them. */
    async function compareWire(heard: readonly Heard[], rows: readonly ParsedRow[]): Promise<void> {
      const gateway = await startGateway(suite.db, null);
      try {
        gateway.time.nowMs = () => suite.world.nowMs();
        const info = async <T>(type: string, fields: object = {}): Promise<T> =>
          (await post(`${gateway.url}/info`, { type, ...fields })).json as T;
        const [, contexts] = await info<[unknown, Record<string, string | null>[]]>('spotMetaAndAssetCtxs');
        const mids = await info<Record<string, string>>('allMids');
        for (const one of heard) {
          const coin = `@${one.market.index}`;
          const { prevDayPx, dayNtlVlm, dayBaseVlm, markPx, midPx } = contexts[one.market.index]!;
          const [last] = await info<{ px: string }[]>('recentTrades', { coin });
          const found = { dayBaseVlm, dayNtlVlm, prevDayPx, midPx, markPx, lastPx: last?.px ?? null };
          const shown = Object.entries(found).map(([key, text]) => [
            key,
            text === undefined || text === null ? null : plain(text),
          ]);
          const slow = slowTicker(one, rows, suite.world.nowMs());
          expect(Object.fromEntries(shown), `the ticker of ${one.market.pair}, seed ${seed}`).to.deep.equal(slow);
          expect(mids[coin] === undefined ? null : plain(mids[coin])).to.equal(slow.midPx);
        }
        for (const maker of suite.world.makers) {
          const own = await info<Record<string, string>[]>('userFills', { user: maker });
          for (const one of heard) {
            const found = own
              .filter(({ coin }) => coin === `@${one.market.index}`)
              .map(({ oid, time, sz, closedPnl }) => ({ oid, time, sz: plain(sz!), closedPnl: plain(closedPnl!) }));
            expect(found.length, `fills of ${maker}`).to.be.greaterThan(0);
            expect(found, `fills of ${maker}, seed ${seed}`).to.deep.equal(
              slowUserFills(one, maker).slice(0, found.length),
            );
          }
        }
      } finally {
        await gateway.stop();
      }
    }

    async function compareMaker(heard: Heard, books: ReturnType<typeof slowBooks>, maker: string): Promise<void> {
      const { market } = heard;
      const slow = slowMaker(heard, books, maker, suite.world.nowMs());
      const path = `/v0/makers/${maker}/performance?pair=${market.pair}&interval=1d&from=${suite.world.nowMs() - 390 * DAY_MS}`;
      const { status, body } = await suite.server.get(path);
      expect(status, JSON.stringify(body)).to.equal(200);
      const [found] = performanceSchema.parse(body).pairs;
      const base = (text: string): bigint => unitsOf(text, market.base.decimals);
      const quote = (text: string): bigint => unitsOf(text, market.quote.decimals);
      const share = (text: string | null): bigint | null => (text === null ? null : unitsOf(text, 6));
      const part = (of: bigint, all: bigint): bigint | null => (all === 0n ? null : (of * 1_000_000n) / all);
      const { bought, paid, sold, got, realised } = slow.position;
      expect(
        {
          counts: [found!.fills, found!.parts, found!.curves],
          bought: [base(found!.bought.base), quote(found!.bought.quote)],
          sold: [base(found!.sold.base), quote(found!.sold.quote)],
          volume: quote(found!.volume),
          realised: [quote(found!.realised_pnl), quote(found!.position.realised_pnl)],
          open: base(found!.position.base),
          average: found!.position.average_price,
          middle: found!.position.middle,
          unrealised: found!.position.unrealised_pnl === null ? null : quote(found!.position.unrealised_pnl),
          markouts: found!.markouts.map((one) => ({
            seconds: one.seconds,
            amount: quote(one.amount),
            marked: quote(one.marked_quote),
            unmarked: quote(one.unmarked_quote),
          })),
          offered: base(found!.offered_base),
          shares: [share(found!.fill_rate), share(found!.book_share), share(found!.fill_share)],
          inventory: base(found!.inventory.at(-1)?.base ?? '0'),
          closed: found!.inventory.reduce((sum, one) => sum + quote(one.realised_pnl), 0n),
        },
        `${maker} in ${market.pair}, seed ${seed}`,
      ).to.deep.equal({
        counts: [slow.fills, slow.parts, slow.curves],
        bought: [bought, paid],
        sold: [sold, got],
        volume: paid + got,
        realised: [realised, realised],
        open: slow.open,
        average: averageCost(market, slow),
        middle: slow.middle === null ? null : exactDecimal(slow.middle),
        unrealised: slow.unrealised,
        markouts: slow.markouts,
        offered: slow.offered,
        shares: [
          part(bought + sold, slow.offered),
          part(slow.offered, slow.offeredByAll),
          part(bought + sold, slow.filledOfAll),
        ],
        inventory: slow.open,
        closed: realised,
      });
    }

    const hourOf = ({ timeMs }: { timeMs: number }): number => Math.floor(timeMs / HOUR_MS) * HOUR_MS;

    /** Where a maker stood at the end of the first hour with fills: hours since then are taken from where it stands now. */
    async function comparePast(heard: Heard, maker: string): Promise<number> {
      const { market, fills } = heard;
      const hourMs = hourOf(fills[0]!);
      const span = `interval=1h&from=${hourMs - 700 * HOUR_MS}&to=${hourMs}`;
      const { body } = await suite.server.get(`/v0/makers/${maker}/performance?pair=${market.pair}&${span}`);
      const last = performanceSchema.parse(body).pairs[0]?.inventory.at(-1);
      if (last === undefined) return 0;
      const trades = fills.flatMap((fill) => slowTrades(market, fill)).filter((trade) => trade.maker === maker);
      const openOf = (of: typeof trades): bigint =>
        of.reduce((sum, { side, base }) => sum + (side === 'bid' ? base : -base), 0n);
      const open = openOf(trades.filter(({ timeMs }) => timeMs < hourMs + HOUR_MS));
      expect(unitsOf(last.base, market.base.decimals), `${maker} at ${hourMs}, seed ${seed}`).to.equal(open);
      return open === openOf(trades) ? 0 : 1;
    }

    async function compareTaker(heard: Heard, taker: string): Promise<void> {
      const { market } = heard;
      const slow = slowTaker(heard, taker);
      const { body } = await suite.server.get(`/v0/takers/${taker}/summary?from=${suite.world.nowMs() - 390 * DAY_MS}`);
      const found = takerSummarySchema.parse(body).pairs.find(({ pair }) => pair === market.pair);
      const traded = (one: { base: string; quote: string }) => [
        unitsOf(one.base, market.base.decimals),
        unitsOf(one.quote, market.quote.decimals),
      ];
      expect(
        {
          fills: found!.fills,
          bought: traded(found!.bought),
          sold: traded(found!.sold),
          fees: traded(found!.fees),
          slippage: unitsOf(found!.slippage, market.quote.decimals),
          priced: unitsOf(found!.priced_quote, market.quote.decimals),
        },
        `${taker} in ${market.pair}, seed ${seed}`,
      ).to.deep.equal(slow);
    }
  });
});
