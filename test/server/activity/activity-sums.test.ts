/** Sums by day, the largest makers, and sums that are made anew, are what the fills add up to. */
import { expect } from 'chai';
import { VerifyError } from '../../../keepers/verify/verification.js';
import { GAS_DAYS, MAKER_HOURS, MARKET_HOURS, TAKER_DAYS, type MakerSum } from '../../../ledger/accounts/tables.js';
import type { Address } from '../../../core/types.js';
import { migrate } from '../../../ledger/db/db.js';
import { readBusiness } from '../../../ledger/accounts/business.js';
import { insertCosts, type TransactionCost } from '../../../ledger/transactions/costs.js';
import { operatorSummarySchema } from '../../../server/read/accounts/operator-summary.js';
import { forEachDatabase } from '../../support/db.js';
import { MARKETS } from '../../support/ledger-log.js';
import { WETH } from '../../support/markets.js';
import { slowCandles, slowTrades } from '../../support/api/market-data.js';
import { startReadServer } from '../../support/api/read-server.js';
import { hear, slowMaker, unitsOf } from '../../support/nodes/slow-accounts.js';
import { activityOf, DAY_MS, HOUR_MS } from '../../support/api/activity.js';

describe('accounts', () => {
  forEachDatabase((_name, open) => {
    const suite = activityOf(open);
    const { seed, verify, trade } = suite;

    it('add up to what the platform earned and what its transactions cost, by day', async () => {
      await suite.server.close();
      const deployment = { ...suite.server.deps.deployment, wrappedNative: WETH.address };
      suite.server = await startReadServer(suite.db, MARKETS, { nowMs: () => suite.world.nowMs(), deployment });
      await trade(80);
      const posts = await suite.db
        .knex('publications')
        .select<{ market: number; tx_key: string }[]>('market', 'tx_key');
      const nowMs = suite.world.nowMs();
      const cost = (nonce: number, txKey: string, feeWei: bigint, seenMs: number): TransactionCost => ({
        ...{
          signer: suite.world.takers[0]!,
          nonce,
          hash: '0x',
          txKey,
          blockNumber: 1,
          gasUsed: 50_001,
          feeWei,
          seenMs,
        },
        succeeded: nonce % 2 === 0,
      });
      const costs = posts.map(({ tx_key: key }, i) => cost(i, key, 10n ** 13n + BigInt(i), nowMs - (i % 3) * DAY_MS));
      await suite.db.knex.transaction(async (tx) => {
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
      const { body } = await suite.server.get(`/v0/operator/summary?from=${nowMs - 390 * DAY_MS}`);
      const summary = operatorSummarySchema.parse(body);
      for (const market of MARKETS) {
        const heard = await hear(suite.server.get, market);
        const quote = (text: string): bigint => unitsOf(text, market.quote.decimals);
        const closes = slowCandles(heard.fills.flatMap((fill) => slowTrades(market, fill)));
        const inputs = await suite.db
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
      const facts = await readBusiness(suite.db.knex, MARKETS, { nativeToken: WETH.address, nowMs });
      expect(facts.gasWei.settler).to.equal(777n);
      let namedMakers = 0;
      for (const one of facts.markets) {
        const shares = one.makers.map(({ fillShare }) => fillShare);
        expect(shares.every(({ part }, i) => i === 0 || part <= shares[i - 1]!.part)).to.equal(true);
        expect(one.makers.length).to.be.within(one.fills > 0n ? 1 : 0, 4);
        expect(one.makerCount).to.be.within(one.makers.length, 4);
        const heard = await hear(suite.server.get, MARKETS[one.market]!);
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
      const { nowMs } = suite.world;
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
      for (let at = 0; at < rows.length; at += 25)
        await suite.db.knex(MAKER_HOURS.name).insert(rows.slice(at, at + 25));
      const { markets } = await readBusiness(suite.db.knex, MARKETS, { nativeToken: WETH.address, nowMs: nowMs() });
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
          for (const row of (await suite.db.knex(table).select()) as object[])
            rows.push(`${table} ${JSON.stringify(row)}`);
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
      await suite.db.knex('settlement_costs').insert({ ...gas, succeeded: 1, fee_wei: '77' });
      await suite.db.knex('gas_days').insert({ role: 'settler', market: -1, day_ms: 0, gas: '5', fee_wei: '77' });
      const rows = await read();
      const checked = await verify();
      for (const table of [MAKER_HOURS, TAKER_DAYS, MARKET_HOURS, GAS_DAYS]) {
        const own = (await suite.db.knex(table.name).first()) as Record<string, string>;
        const key = Object.fromEntries([...table.text, ...table.whole].map((column) => [column, own[column]]));
        for (const column of table.sums) {
          await suite.db
            .knex(table.name)
            .where(key)
            .update({ [column]: `${BigInt(own[column]!) + 1n}` });
          const error = await verify().then(
            () => null,
            (thrown: unknown) => thrown,
          );
          expect(error, `${table.name}.${column}`).to.be.instanceOf(VerifyError);
          await suite.db
            .knex(table.name)
            .where(key)
            .update({ [column]: own[column]! });
        }
        await suite.db.knex(table.name).where(key).delete();
        expect(await verify().catch((error: unknown) => error)).to.be.instanceOf(VerifyError);
        await suite.db.knex(table.name).insert(own);
      }
      expect(await verify()).to.equal(checked);
      const post = (await suite.db.knex('posts_seen').whereNotNull('middle_half_subticks').first()) as { seq: number };
      await suite.db.knex('posts_seen').where({ seq: post.seq }).update({ middle_half_subticks: '1' });
      expect(await verify().catch((error: unknown) => error)).to.be.instanceOf(VerifyError);
      await suite.db.knex(MAKER_HOURS.name).update({ parts: '7' });
      await suite.db.knex('meta').insert({ key: 'stale_market_data', value: 'asked' });
      await migrate(suite.db);
      expect(await read()).to.deep.equal(rows);
    });
  });
});
