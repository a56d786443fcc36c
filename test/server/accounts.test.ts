/** What the API says of makers, takers and markets is what an independent program counts from decompositions, curves and the order log. */
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import type { z } from 'zod';
import { INTERVALS } from '../../core/market-data/intervals.js';
import { verifyActivity } from '../../keepers/verify/activity.js';
import { VerifyError } from '../../keepers/verify/verification.js';
import { GAS_DAYS, MAKER_HOURS, MARKET_HOURS, TAKER_DAYS, type MakerSum } from '../../ledger/accounts/tables.js';
import type { Address } from '../../core/types.js';
import { migrate } from '../../ledger/db/db.js';
import { readBusiness } from '../../ledger/accounts/business.js';
import { insertCosts, type TransactionCost } from '../../ledger/transactions/costs.js';
import type { Db } from '../../ledger/types.js';
import { candlesSchema } from '../../server/read/candles.js';
import { operatorSummarySchema } from '../../server/read/accounts/operator-summary.js';
import { performanceSchema } from '../../server/read/accounts/performance.js';
import { takerSummarySchema } from '../../server/read/accounts/taker-summary.js';
import { forEachDatabase, isOneEnough } from '../support/db.js';
import { MARKETS } from '../support/ledger-log.js';
import { WETH } from '../support/markets.js';
import { slowCandles, slowNext, slowTrades } from '../support/api/market-data.js';
import { drawer } from '../support/random.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
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
} from '../support/nodes/slow-accounts.js';
import { plain, slowTicker, slowUserFills } from '../support/nodes/slow-tickers.js';
import { post, startGateway } from '../support/gateway.js';
import { createTradedLedger, type TradedLedger } from '../support/worlds/traded-ledger.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** `npm run test:deep` takes ten thousand; FILLS chooses otherwise. */
const FILLS = Number.parseInt(process.env.FILLS ?? '', 10) || (isOneEnough() ? 300 : 10_000);

describe('accounts', () => {
  forEachDatabase((_name, open) => {
    let server: ReadServer;
    let db: Db;
    let world: TradedLedger;
    const seed = Number.parseInt(process.env.SEED ?? `${Date.now() % 1_000_000}`, 10);

    beforeEach(async () => {
      db = await open();
      world = await createTradedLedger(db, MARKETS, drawer(seed));
      server = await startReadServer(db, MARKETS, { nowMs: () => world.nowMs() });
    });

    afterEach(() => server.close());

    const verify = () => verifyActivity({ q: db.knex, markets: MARKETS, onProgress: () => undefined });

    const agent = new Agent({ keepAlive: true });
    after(() => agent.destroy());

    /** A resource as it comes: tens of thousands of them are not held against the OpenAPI document, as those that tests fetch are. */
    async function get(path: string): Promise<{ status: number; body: unknown }> {
      const [response] = (await once(request(`${server.url}${path}`, { agent }).end(), 'response')) as [
        IncomingMessage,
      ];
      return { status: response.statusCode ?? 0, body: await json(response) };
    }

    /** Trades at random, with reversals in between, until so many fills were made. */
    async function trade(fills: number): Promise<void> {
      const pick = drawer(seed + 1);
      let reversals = 0;
      for (let made = 0; made < fills || reversals < 3;) {
        if (pick(25) === 0 && world.height() > 3) {
          await world.reverse(1 + pick(Math.min(12, world.height() - 2)));
          reversals += 1;
        } else made += await world.step();
      }
    }

    it('are what an independent program counts, to the unit, through reversals', async function () {
      this.timeout(FILLS * 600);
      await trade(FILLS);
      const heard = await Promise.all(MARKETS.map((market) => hear(get, market)));
      expect(heard.reduce((sum, { fills }) => sum + fills.length, 0)).to.be.greaterThan(FILLS / 3);
      const rows = parsedRows(await db.knex('order_log').orderBy('order_seq').select<StoredOrderRow[]>());
      await compareWire(heard, rows);
      let moved = 0;
      for (const one of heard) {
        await compareCandles(one);
        const books = slowBooks(one, rows);
        for (const maker of world.makers) await compareMaker(one, books, maker);
        for (const maker of world.makers) moved += await comparePast(one, maker);
        for (const taker of world.takers) await compareTaker(one, taker);
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
        const { body } = await server.get(`/v0/candles/${pair}?interval=${interval}${to}`);
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
      const gateway = await startGateway(db, null);
      try {
        gateway.time.nowMs = () => world.nowMs();
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
          const slow = slowTicker(one, rows, world.nowMs());
          expect(Object.fromEntries(shown), `the ticker of ${one.market.pair}, seed ${seed}`).to.deep.equal(slow);
          expect(mids[coin] === undefined ? null : plain(mids[coin])).to.equal(slow.midPx);
        }
        for (const maker of world.makers) {
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
      const slow = slowMaker(heard, books, maker, world.nowMs());
      const path = `/v0/makers/${maker}/performance?pair=${market.pair}&interval=1d&from=${world.nowMs() - 390 * DAY_MS}`;
      const { status, body } = await server.get(path);
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
      const { body } = await server.get(`/v0/makers/${maker}/performance?pair=${market.pair}&${span}`);
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
      const { body } = await server.get(`/v0/takers/${taker}/summary?from=${world.nowMs() - 390 * DAY_MS}`);
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

    it('add up to what the platform earned and what its transactions cost, by day', async () => {
      await server.close();
      const deployment = { ...server.deps.deployment, wrappedNative: WETH.address };
      server = await startReadServer(db, MARKETS, { nowMs: () => world.nowMs(), deployment });
      await trade(80);
      const posts = await db.knex('publications').select<{ market: number; tx_key: string }[]>('market', 'tx_key');
      const nowMs = world.nowMs();
      const cost = (nonce: number, txKey: string, feeWei: bigint, seenMs: number): TransactionCost => ({
        ...{ signer: world.takers[0]!, nonce, hash: '0x', txKey, blockNumber: 1, gasUsed: 50_001, feeWei, seenMs },
        succeeded: nonce % 2 === 0,
      });
      const costs = posts.map(({ tx_key: key }, i) => cost(i, key, 10n ** 13n + BigInt(i), nowMs - (i % 3) * DAY_MS));
      await db.knex.transaction(async (tx) => {
        await insertCosts(tx, 'poster', costs);
        await insertCosts(tx, 'settler', [cost(1, 'settle:1', 777n, nowMs)]);
        await insertCosts(tx, 'executor', [cost(2, 'of no order', 888n, nowMs)]);
        // One transaction with a post for each market: the first of them has what is left over.
        await tx('publications')
          .where({ tx_key: posts.find(({ market }) => market === 0)!.tx_key })
          .update({ tx_key: 'both' });
        await tx('publications')
          .where({ tx_key: posts.find(({ market }) => market === 1)!.tx_key })
          .update({ tx_key: 'both' });
        await insertCosts(tx, 'poster', [cost(1_000_000, 'both', 7n, nowMs)]);
        await tx('publications')
          .where({ tx_key: 'both', market: 0 })
          .update({ tx_key: posts.find(({ market }) => market === 0)!.tx_key });
      });
      const { body } = await server.get(`/v0/operator/summary?from=${nowMs - 390 * DAY_MS}`);
      const summary = operatorSummarySchema.parse(body);
      for (const market of MARKETS) {
        const heard = await hear(server.get, market);
        const quote = (text: string): bigint => unitsOf(text, market.quote.decimals);
        const closes = slowCandles(heard.fills.flatMap((fill) => slowTrades(market, fill)));
        const inputs = await db
          .knex('fills')
          .where({ market: market.index })
          .select<{ fill_seq: number; input_fee_units: string }[]>('fill_seq', 'input_fee_units');
        const inputOf = new Map(inputs.map((row) => [row.fill_seq, BigInt(row.input_fee_units)]));
        const found = summary.pairs.find(({ pair }) => pair === market.pair)!;
        let profit = 0n;
        for (const day of found.days) {
          const fills = heard.fills.filter(({ timeMs }) => Math.floor(timeMs / DAY_MS) * DAY_MS === day.open_ms);
          const sum = (of: (fill: (typeof fills)[number]) => bigint): bigint =>
            fills.reduce((all, fill) => all + of(fill), 0n);
          const gain = sum(({ gain: units }) => units);
          const inputQuote = sum(({ side, fillSeq }) => (side === 'ask' ? inputOf.get(fillSeq)! : 0n));
          const inputBase = sum(({ side, fillSeq }) => (side === 'bid' ? inputOf.get(fillSeq)! : 0n));
          const wei = costs.reduce(
            (all, one, i) =>
              posts[i]!.market === market.index && Math.floor(one.seenMs / DAY_MS) * DAY_MS === day.open_ms
                ? all + one.feeWei
                : all,
            Math.floor(nowMs / DAY_MS) * DAY_MS === day.open_ms ? (market.index === 0 ? 4n : 3n) : 0n,
          );
          expect([day.fills, quote(day.residual), quote(day.volume)]).to.deep.equal([
            fills.length,
            gain,
            sum(({ quote: units }) => units),
          ]);
          expect(unitsOf(day.gas.posts, 18)).to.equal(wei);
          const close = [...closes]
            .filter(([key]) => key.startsWith('1d:') && Number(key.slice(3)) <= day.open_ms)
            .sort(([a], [b]) => Number(a.slice(3)) - Number(b.slice(3)))
            .at(-1);
          if (close === undefined) {
            expect(day.profit).to.equal(wei === 0n ? '0' : null);
            continue;
          }
          const ticks = BigInt(close[1].split(' ')[3]!);
          const worth = (units: bigint): bigint => ticks * market.tickLotUnits * units;
          const gas = (worth(wei) + market.lotUnits - 1n) / market.lotUnits;
          expect(quote(day.gas_quote!)).to.equal(gas);
          expect(quote(day.profit!)).to.equal(gain + inputQuote + worth(inputBase) / market.lotUnits - gas);
          profit += quote(day.profit!);
        }
        if (found.total.profit !== null) expect(quote(found.total.profit)).to.equal(profit);
        expect(found.days.reduce((sum, day) => sum + day.fills, 0)).to.equal(heard.fills.length);
      }
      expect([summary.gas.settlements, summary.gas.fills]).to.deep.equal([
        '0.000000000000000777',
        '0.000000000000000888',
      ]);
      const all = costs.reduce((sum, { feeWei }) => sum + feeWei, 7n);
      expect(unitsOf(summary.gas.posts, 18)).to.equal(all);
      // A reader of metrics sees the same of the newest day.
      const facts = await readBusiness(db.knex, MARKETS, { nativeToken: WETH.address, nowMs });
      expect(facts.gasWei.settler).to.equal(777n);
      let namedMakers = 0;
      for (const one of facts.markets) {
        const shares = one.makers.map(({ fillShare }) => fillShare);
        expect(shares.every(({ part }, i) => i === 0 || part <= shares[i - 1]!.part)).to.equal(true);
        expect(one.makers.length).to.be.within(one.fills > 0n ? 1 : 0, 4);
        expect(one.makerCount).to.be.within(one.makers.length, 4);
        const heard = await hear(server.get, MARKETS[one.market]!);
        for (const { maker, positionUnits, unrealisedUnits } of one.makers) {
          const slow = slowMaker(heard, [], maker, nowMs);
          expect([positionUnits, unrealisedUnits], `${maker}, seed ${seed}`).to.deep.equal([
            slow.open,
            slow.unrealised,
          ]);
        }
        namedMakers += one.makers.length;
      }
      expect(namedMakers).to.be.greaterThan(0);
    });

    it('name the five largest makers of a pair, of however many, and count the others', async () => {
      const { nowMs } = world;
      const sums = Object.fromEntries(MAKER_HOURS.sums.map((name) => [name, '0'])) as Record<MakerSum, string>;
      const row = { ...sums, market: 0 };
      const hourMs = Math.floor(nowMs() / HOUR_MS) * HOUR_MS;
      const makerOf = (no: number): Address => `0x${no.toString(16).padStart(40, '0')}`;
      // The larger ones have what they traded in two hours, and none of them a number that a float could hold.
      const units = (no: number): bigint => 10n ** 22n + BigInt(no * 10 ** 9 + 1);
      const rows = Array.from({ length: 300 }, (_, i) => [
        { ...row, maker: makerOf(i), hour_ms: hourMs, bought_base: `${units(i)}`, fills: '1' },
        { ...row, maker: makerOf(i), hour_ms: hourMs - HOUR_MS, sold_base: `${units(i)}`, sold_quote: '7' },
        { ...row, maker: makerOf(i), hour_ms: hourMs - 24 * HOUR_MS, bought_base: `${10n ** 30n}` },
      ]).flat();
      for (let at = 0; at < rows.length; at += 25) await db.knex(MAKER_HOURS.name).insert(rows.slice(at, at + 25));
      const { markets } = await readBusiness(db.knex, MARKETS, { nativeToken: WETH.address, nowMs: nowMs() });
      const [facts] = markets;
      expect(facts!.makers.map((one) => [one.maker, one.fillRate.part, one.volumeUnits])).to.deep.equal(
        [299, 298, 297, 296, 295].map((no) => [makerOf(no), 2n * units(no), 7n]),
      );
      expect([facts!.makerCount, markets[1]!.makerCount]).to.deep.equal([300, 0]);
    });

    it('are the same when they are made anew, and every change of a sum or a middle is found', async () => {
      await trade(60);
      const tables = [GAS_DAYS.name, MAKER_HOURS.name, TAKER_DAYS.name, MARKET_HOURS.name, 'posts_seen'];
      const read = async () => {
        const rows: string[] = [];
        for (const table of tables) {
          for (const row of (await db.knex(table).select()) as object[]) rows.push(`${table} ${JSON.stringify(row)}`);
        }
        return rows.sort();
      };
      const gas = {
        signer: '0x1' as const,
        hash: '0x' as const,
        tx_key: '',
        nonce: 1,
        block_number: 1,
        gas_used: 5,
        seen_ms: 9,
      };
      await db.knex('settlement_costs').insert({ ...gas, succeeded: 1, fee_wei: '77' });
      await db.knex('gas_days').insert({ role: 'settler', market: -1, day_ms: 0, gas: '5', fee_wei: '77' });
      const rows = await read();
      const checked = await verify();
      for (const table of [MAKER_HOURS, TAKER_DAYS, MARKET_HOURS, GAS_DAYS]) {
        const own = (await db.knex(table.name).first()) as Record<string, string>;
        const key = Object.fromEntries([...table.text, ...table.whole].map((column) => [column, own[column]]));
        for (const column of table.sums) {
          await db
            .knex(table.name)
            .where(key)
            .update({ [column]: `${BigInt(own[column]!) + 1n}` });
          const error = await verify().then(
            () => null,
            (thrown: unknown) => thrown,
          );
          expect(error, `${table.name}.${column}`).to.be.instanceOf(VerifyError);
          await db
            .knex(table.name)
            .where(key)
            .update({ [column]: own[column]! });
        }
        await db.knex(table.name).where(key).delete();
        expect(await verify().catch((error: unknown) => error)).to.be.instanceOf(VerifyError);
        await db.knex(table.name).insert(own);
      }
      expect(await verify()).to.equal(checked);
      const post = (await db.knex('posts_seen').whereNotNull('middle_half_subticks').first()) as { seq: number };
      await db.knex('posts_seen').where({ seq: post.seq }).update({ middle_half_subticks: '1' });
      expect(await verify().catch((error: unknown) => error)).to.be.instanceOf(VerifyError);
      await db.knex(MAKER_HOURS.name).update({ parts: '7' });
      await db.knex('meta').insert({ key: 'stale_market_data', value: 'asked' });
      await migrate(db);
      expect(await read()).to.deep.equal(rows);
    });
  });
});
