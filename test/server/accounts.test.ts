/** What the API says of makers, takers and markets is what an independent program counts from decompositions, curves and the order log. */
import { expect } from 'chai';
import { INTERVALS } from '../../core/market-data/intervals.js';
import { verifyActivity } from '../../keepers/verify/activity.js';
import { VerifyError } from '../../keepers/verify/verification.js';
import { GAS_DAYS, MAKER_HOURS, MARKET_HOURS, TAKER_DAYS } from '../../ledger/accounts/tables.js';
import { migrate } from '../../ledger/db/db.js';
import { readBusiness } from '../../ledger/accounts/business.js';
import { insertCosts, type TransactionCost } from '../../ledger/transactions/costs.js';
import { dayFigures } from '../../ledger/market-data/reads.js';
import type { Db } from '../../ledger/types.js';
import { candlesSchema } from '../../server/read/candles.js';
import { operatorSummarySchema } from '../../server/read/accounts/operator-summary.js';
import { performanceSchema } from '../../server/read/accounts/performance.js';
import { takerSummarySchema } from '../../server/read/accounts/taker-summary.js';
import { forEachDatabase, isOneEnough } from '../support/db.js';
import { MARKETS } from '../support/ledger-log.js';
import { WETH } from '../support/markets.js';
import { slowCandles, slowTrades } from '../support/api/market-data.js';
import { drawer } from '../support/random.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
import {
  hear,
  slowBooks,
  slowMaker,
  slowTaker,
  unitsOf,
  type Heard,
  type StoredOrderRow,
} from '../support/nodes/slow-accounts.js';
import { createTradedLedger, type TradedLedger } from '../support/worlds/traded-ledger.js';

const DAY_MS = 86_400_000;

/** `npm run test:deep` takes ten thousand. */
const FILLS = isOneEnough() ? 300 : 10_000;

describe('accounts', () => {
  forEachDatabase((_name, open) => {
    let server: ReadServer;
    let db: Db;
    let world: TradedLedger;
    const seed = Number.parseInt(process.env.SEED ?? `${Date.now() % 1_000_000}`, 10);

    beforeEach(async () => {
      db = await open();
      await migrate(db);
      world = await createTradedLedger(db, MARKETS, drawer(seed));
      server = await startReadServer(db, MARKETS, { nowMs: () => world.nowMs() });
    });

    afterEach(() => server.close());

    const verify = () => verifyActivity({ q: db.knex, markets: MARKETS, onProgress: () => undefined });

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
      const heard = await Promise.all(MARKETS.map((market) => hear(server.get, market)));
      expect(heard.reduce((sum, { fills }) => sum + fills.length, 0)).to.be.greaterThan(FILLS / 3);
      const rows = await db.knex('order_log').orderBy('order_seq').select<StoredOrderRow[]>();
      for (const one of heard) {
        await compareCandles(one);
        await compareDay(one);
        const books = slowBooks(one, rows);
        for (const maker of world.makers) await compareMaker(one, books, maker);
        for (const taker of world.takers) await compareTaker(one, taker);
      }
      // One sum per taker and market at least, and those of makers beside them.
      const takers = new Set(
        heard.flatMap(({ market, fills }) => fills.map(({ taker }) => `${market.index} ${taker}`)),
      );
      expect(await verify()).to.be.greaterThan(takers.size);
    });

    async function compareCandles({ market, fills }: Heard): Promise<void> {
      const slow = slowCandles(fills.flatMap((fill) => slowTrades(market, fill)));
      for (const interval of INTERVALS) {
        const { body } = await server.get(`/v0/candles/${market.pair}?interval=${interval}`);
        const { candles } = candlesSchema.parse(body);
        const traded = candles.filter(({ trades }) => trades > 0);
        const ticks = (price: string): bigint => unitsOf(price, 8) / unitsOf(market.tickSize, 8);
        const found = traded.map((one) => [
          `${interval}:${one.open_ms}`,
          [
            ...[one.open, one.high, one.low, one.close].map(ticks),
            unitsOf(one.base_volume, market.base.decimals),
            unitsOf(one.quote_volume, market.quote.decimals),
            one.trades,
          ].join(' '),
        ]);
        const first = candles[0]!.open_ms;
        const due = [...slow].filter(([key]) => {
          const [of, openMs] = key.split(':');
          return of === interval && Number(openMs) >= first;
        });
        expect(Object.fromEntries(found), `${interval} of ${market.pair}, seed ${seed}`).to.deep.equal(
          Object.fromEntries(due),
        );
      }
    }

    async function compareDay({ market, fills }: Heard): Promise<void> {
      const trades = fills.flatMap((fill) => slowTrades(market, fill));
      const endMs = (Math.floor(world.nowMs() / 60_000) + 1) * 60_000;
      const day = trades.filter(({ timeMs }) => timeMs >= endMs - DAY_MS);
      const before = trades.findLast(({ timeMs }) => timeMs < endMs - DAY_MS);
      expect(await dayFigures(db.knex, market.index, world.nowMs()), `seed ${seed}`).to.deep.equal({
        baseUnits: day.reduce((sum, one) => sum + one.base, 0n),
        quoteUnits: day.reduce((sum, one) => sum + one.quote, 0n),
        previousTicks: before?.ticks ?? day[0]?.ticks ?? null,
        lastTicks: trades.at(-1)?.ticks ?? null,
      });
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
      for (const one of facts.markets) {
        const shares = one.makers.map(({ fillShare }) => fillShare);
        expect(shares.every(({ part }, i) => i === 0 || part <= shares[i - 1]!.part)).to.equal(true);
        expect(one.makers.length).to.be.within(one.fills > 0n ? 1 : 0, 4);
      }
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
