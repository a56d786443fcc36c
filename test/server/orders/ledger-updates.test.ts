/** Values of deposits and withdrawals: right to the minute, and read with few statements however many there are. */
import { expect } from 'chai';
import { formatUnits } from '../../../core/amounts.js';
import { quoteUnitsFloor } from '../../../core/market.js';
import type { Address } from '../../../core/types.js';
import { withPoint } from '../../../core/wire/decimal.js';
import { readTx } from '../../../ledger/db/db.js';
import { lastCandleBefore, storeCandles } from '../../../ledger/market-data/candle-rows.js';
import type { Db, Queryable } from '../../../ledger/types.js';
import type { LedgerUpdate } from '../../../ledger/views/ledger-updates.js';
import { ledgerUpdateRows } from '../../../server/orders/info/ledger-updates.js';
import { forEachDatabase } from '../../support/db.js';
import { MAKERS, USDC, WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

const MINUTE_MS = 60_000;
const FIRST_MS = 1_700_006_400_000;
const MARKETS = [WETH_DAI, WETH_USDC].map((market, index) => ({ ...market, index }));
const USDC_MARKET = MARKETS[1]!;
const [user] = MAKERS as [Address];

forEachDatabase((name, open) =>
  describe(`deposits and withdrawals on the exchange wire, ${name}`, () => {
    let db: Db;
    let statements: string[];

    beforeEach(async () => {
      db = await open();
      statements = [];
      for (const knex of new Set([db.knex, db.reads]))
        knex.on('query', ({ sql }: { sql: string }) => {
          if (sql.includes('candles')) statements.push(sql);
        });
    });

    /** A trade every seventh minute, in both markets. */
    const trade = (count: number): Promise<void> =>
      db.knex.transaction(async (tx) => {
        const candles = Array.from({ length: count }, (_, i) =>
          MARKETS.map(({ index: market }) => {
            const ticks = 250_000n + BigInt(i + 1_000 * market);
            const prices = { openTicks: ticks, highTicks: ticks, lowTicks: ticks, closeTicks: ticks };
            const openMs = FIRST_MS + 7 * i * MINUTE_MS;
            return { market, interval: '1m' as const, openMs, ...prices, baseUnits: 1n, quoteUnits: 1n, trades: 1 };
          }),
        ).flat();
        await storeCandles(tx, candles);
        statements = [];
      });

    const updateOf = (token: Address, timeMs: number, amountUnits = 10n ** 18n): LedgerUpdate => ({
      ...{ account: user, generation: 1, kind: 'deposited', token, amountUnits, timeMs },
      txHash: `0x${timeMs.toString(16).padStart(64, '0')}`,
    });

    const rowsOf = async (q: Queryable, updates: readonly LedgerUpdate[]) =>
      (await ledgerUpdateRows(q, updates, MARKETS)) as { time: number; delta: { type: string; usdcValue?: string } }[];

    it('are worth what the last trade before says, in USDC, and nothing before the first trade', async () => {
      await trade(3);
      const times = [-1, 0, 1, 30_000, 7 * MINUTE_MS - 1, 7 * MINUTE_MS, 14 * MINUTE_MS + 59_999, 40 * MINUTE_MS];
      const updates = times.map((afterMs) => updateOf(WETH.address, FIRST_MS + afterMs, 3n * 10n ** 17n + 1n));
      const expected = await Promise.all(
        updates.map(async ({ timeMs, amountUnits }) => {
          const of = { market: USDC_MARKET.index, interval: '1m', beforeMs: timeMs + 1 } as const;
          const candle = await lastCandleBefore(db.knex, of);
          if (candle === null) return '0.0';
          const units = quoteUnitsFloor(USDC_MARKET, candle.closeTicks, amountUnits);
          return withPoint(formatUnits(units, USDC.decimals));
        }),
      );
      expect(expected).to.include('0.0');
      expect(new Set(expected)).to.have.length(4);
      for (const read of [
        (work: (q: Queryable) => Promise<unknown>) => readTx(db, work),
        (work: (q: Queryable) => unknown) => work(db.reads),
      ])
        await read(async (q) => {
          const rows = await rowsOf(q, [...updates, updateOf(USDC.address, FIRST_MS)]);
          expect(rows.map(({ delta }) => delta.usdcValue)).to.deep.equal([...expected, undefined]);
          expect(rows.map(({ time }) => time - FIRST_MS)).to.deep.equal([...times, 0]);
        });
    });

    it('take few statements, however many they are and however far apart', async () => {
      await trade(300);
      const apart = Array.from({ length: 2_000 }, (_, i) => updateOf(WETH.address, FIRST_MS + i * MINUTE_MS));
      const rows = await readTx(db, (q) => rowsOf(q, apart));
      expect(rows).to.have.length(2_000);
      expect(statements.length).to.be.within(1, 4);
      statements = [];
      const together = Array.from({ length: 2_000 }, (_, i) => updateOf(WETH.address, FIRST_MS + i));
      await rowsOf(db.reads, together);
      expect(statements).to.have.length(1);
    });
  }),
);
