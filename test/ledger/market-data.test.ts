import { expect } from 'chai';
import { INTERVALS, nextOpen, openOf, opensBefore } from '../../core/market-data/intervals.js';
import { withoutGaps, type Candle } from '../../core/market-data/candles.js';
import type { Address, Hex } from '../../core/types.js';
import { verifyMarketData } from '../../keepers/verify/market-data.js';
import { lastGeneration, readProgress } from '../../ledger/chain/ledger-log.js';
import { readCandles } from '../../ledger/market-data/candle-rows.js';
import { readPositionsIn } from '../../ledger/market-data/position-rows.js';
import { userOrderFills } from '../../ledger/views/reads.js';
import { reverseGenerations } from '../../ledger/chain/reversals.js';
import { commitGeneration } from '../../ledger/chain/ledger-log.js';
import { migrate } from '../../ledger/db/db.js';
import type { AttributedFill, Db, GenerationWrite, ScannedBlock } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { forEachDatabase } from '../support/db.js';
import { OPERATOR, deposit, fillOf, nothingWritten, withFills } from '../support/generations.js';
import { ETHER, MARKETS } from '../support/ledger-log.js';
import {
  SLOW_INTERVALS,
  slowCandles,
  slowOpen,
  slowPosition,
  slowTrades,
  type SlowFill,
} from '../support/api/market-data.js';
import { DAI, USDC, WETH } from '../support/markets.js';
import { drawer } from '../support/random.js';

const MAKERS = ['a', 'b', 'c'].map((letter): Address => `0x${letter.repeat(40)}`);

describe('candles and positions', () => {
  it('begin where the calendar says, for every interval', () => {
    const pick = drawer(11);
    expect([...INTERVALS]).to.have.members(SLOW_INTERVALS);
    const times = Array.from({ length: 300 }, () => pick(4e9) * 1_000 + pick(1_000));
    for (const interval of INTERVALS) {
      for (const time of [...times, 0, Date.UTC(2024, 1, 29, 23, 59, 59, 999), Date.UTC(2024, 2, 1)]) {
        const open = openOf(interval, time);
        expect(open, `${interval} at ${time}`).to.equal(slowOpen(interval, time));
        const next = nextOpen(interval, open);
        expect([time < next, openOf(interval, next - 1), openOf(interval, next)]).to.deep.equal([true, open, next]);
        expect(opensBefore(interval, next, 1)).to.equal(open);
      }
    }
  });

  it('have no gaps after the first trade, and none before it', () => {
    const traded = (openMs: number, close: bigint): Candle => ({
      interval: '1m',
      openMs,
      openTicks: 1n,
      highTicks: 9n,
      lowTicks: 1n,
      closeTicks: close,
      baseUnits: 1n,
      quoteUnits: 1n,
      trades: 1,
    });
    const range = { fromMs: 60_000, toMs: 240_000 };
    const closes = (candles: readonly Candle[]) =>
      candles.map((one) => [one.openMs / 60_000, one.openTicks, one.closeTicks, one.trades]);
    expect(closes(withoutGaps('1m', { ...range, closeTicks: null }, [traded(120_000, 5n)]))).to.deep.equal([
      [2, 1n, 5n, 1],
      [3, 5n, 5n, 0],
      [4, 5n, 5n, 0],
    ]);
    expect(closes(withoutGaps('1m', { ...range, closeTicks: 7n }, [traded(240_000, 5n)]))).to.deep.equal([
      [1, 7n, 7n, 0],
      [2, 7n, 7n, 0],
      [3, 7n, 7n, 0],
      [4, 1n, 5n, 1],
    ]);
    expect(withoutGaps('1m', { ...range, closeTicks: null }, [])).to.deep.equal([]);
  });

  forEachDatabase((name, open) => {
    it('are what an independent count of random fills says, through reversals, and when they are made anew', async () => {
      const seed = Number.parseInt(process.env.SEED ?? `${Date.now() % 1_000_000}`, 10);
      const pick = drawer(seed);
      const db = await open();
      const world = await createWorld(db, pick);
      const steps = name === 'SQLite' ? 260 : 90;
      let reversals = 0;
      for (let i = 0; i < steps; i += 1) {
        // Two at least, however the numbers fall.
        const isDue = i === Math.floor(steps / 3) || i === Math.floor((2 * steps) / 3);
        if ((isDue || pick(12) === 0) && world.height() > 2) {
          reversals += 1;
          await world.reverse(1 + pick(Math.min(8, world.height() - 1)));
          await compare(db, world.fills(), `after reversal ${reversals}, seed ${seed}`);
        } else await world.trade();
      }
      expect(reversals).to.be.greaterThan(1);
      // Enough to compare, however much the last reversals took back.
      for (let i = 0; i < 40; i += 1) await world.trade();
      await compare(db, world.fills(), `at the end, seed ${seed}`);
      const markets = MARKETS;
      const counted = await verifyMarketData({ q: db.knex, markets, onProgress: () => undefined });
      expect(counted).to.be.greaterThan(100);
      const rows = await tables(db);
      await db.knex('order_fills').update({ quote_units: '1', closed_units: '1', timestamp_ms: 1 });
      await db.knex('candles').where({ interval_no: 3 }).update({ trades: 1_000 });
      await db.knex('meta').insert({ key: 'stale_market_data', value: 'asked' });
      const told: number[][] = [];
      await migrate(db, (...counts) => told.push(counts));
      const fills = world.fills().length;
      expect(told).to.deep.equal([[fills, fills]]);
      expect(await tables(db)).to.deep.equal(rows);
      expect((await readProgress(db.knex)).map(({ market }) => market)).to.deep.equal([0, 1]);
    });
  });
});

/** Rows of the projections, without the generation that wrote them last. */
async function tables(db: Db): Promise<string[]> {
  const rows: string[] = [];
  for (const table of ['candles', 'maker_positions', 'order_fills']) {
    for (const { generation: _, ...row } of (await db.knex(table).select()) as Record<string, unknown>[]) {
      rows.push(`${table} ${JSON.stringify(row)}`);
    }
  }
  return rows.sort();
}

async function compare(db: Db, fills: readonly SlowFill[], when: string): Promise<void> {
  for (const market of MARKETS) {
    const trades = fills.filter((fill) => fill.market === market.index).flatMap((fill) => slowTrades(market, fill));
    const stored = new Map<string, string>();
    for (const interval of INTERVALS) {
      const range = { market: market.index, interval, fromMs: -1e12, toMs: 1e14 };
      for (const one of await readCandles(db.knex, range)) {
        const { openTicks, highTicks, lowTicks, closeTicks, baseUnits, quoteUnits } = one;
        const values = [openTicks, highTicks, lowTicks, closeTicks, baseUnits, quoteUnits, one.trades];
        stored.set(`${interval}:${one.openMs}`, values.join(' '));
      }
    }
    expect(Object.fromEntries(stored), `${market.pair} ${when}`).to.deep.equal(Object.fromEntries(slowCandles(trades)));
    const positions = new Map((await readPositionsIn(db.knex, market.index)).map((one) => [one.maker, one]));
    for (const maker of MAKERS) {
      const own = trades.filter((trade) => trade.maker === maker);
      const slow = slowPosition(own);
      const found = positions.get(maker);
      const { boughtBaseUnits, boughtQuoteUnits, soldBaseUnits, soldQuoteUnits, realisedUnits } = found ?? {};
      const values = [boughtBaseUnits, boughtQuoteUnits, soldBaseUnits, soldQuoteUnits, realisedUnits, found?.parts];
      expect(
        values.map((value) => value ?? 0n).join(' '),
        `the position of ${maker} in ${market.pair} ${when}`,
      ).to.equal([slow.bought, slow.paid, slow.sold, slow.got, slow.realised, own.length].join(' '));
      const parts = (await userOrderFills(db.knex, maker, 10_000)).filter((fill) => fill.market === market.index);
      expect(parts.reverse().map((fill) => [fill.oid, fill.closedUnits])).to.deep.equal(
        own.map((trade, i) => [trade.oid, slow.closed[i]]),
      );
    }
  }
}

/** A ledger that trades at random, and the fills that are live in it. */
async function createWorld(db: Db, pick: (bound: number) => number) {
  const writer = await acquireWriter(db, 'ledger');
  const commit = (write: GenerationWrite) => writer.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
  let branch = 0;
  let tx = 0;
  let generation = 0;
  let timeSec = Date.UTC(2024, 0, 30, 22) / 1_000;
  const chain: { block: ScannedBlock; generation: number; fills: SlowFill[] }[] = [];
  const hash = (number: number): Hex =>
    `0x${branch.toString(16).padStart(8, '0')}${number.toString(16).padStart(56, '0')}`;

  async function add(make: (write: GenerationWrite) => AttributedFill[]): Promise<void> {
    const number = 100 + chain.length;
    const parent = chain.at(-1)?.block.hash ?? `0x${'0'.repeat(64)}`;
    const block: ScannedBlock = { number, hash: hash(number), parentHash: parent, timestampSec: timeSec };
    generation += 1;
    const write: GenerationWrite = {
      ...nothingWritten(),
      ...{ generation, fromBlock: number, toBlock: number, blocks: [block] },
      ...{ scannedMs: timeSec * 1_000, observedHead: number, observedHeadTimestampMs: timeSec * 1_000 },
    };
    const fills = make(write);
    const { entries } = withFills(MARKETS, fills);
    await commit({ ...write, fills, entries: [...write.entries, ...entries] });
    const slow = fills.map(({ fill, decomposition }) => ({
      ...{ market: fill.market, fillSeq: fill.fillSeq, side: fill.side, timeMs: fill.timestampMs },
      legs: decomposition.legs,
    }));
    chain.push({ block, generation, fills: slow });
  }

  const live = (): SlowFill[] => chain.flatMap(({ fills }) => fills);
  const nextSeq = (market: number): number => live().filter((fill) => fill.market === market).length + 1;

  await add((write) => {
    write.listed.push(...MARKETS);
    for (const [i, maker] of MAKERS.entries()) {
      for (const [j, token] of [WETH, USDC, DAI].entries()) {
        const one = deposit(1, i * 3 + j, maker, token.address, 10n ** 12n * ETHER);
        write.custody.push(...one.custody);
        write.entries.push(...one.entries);
        write.netCapital.push(...one.netCapital);
      }
    }
    return [];
  });

  return {
    height: () => chain.length,
    fills: live,
    async trade(): Promise<void> {
      timeSec += 1 + pick(4) ** 2 * pick([2, 60, 5_000, 90_000][pick(4)]!);
      await add((write) => {
        const seqs = MARKETS.map(({ index }) => nextSeq(index));
        return Array.from({ length: pick(4) }, () => {
          const market = MARKETS[pick(2)]!;
          const fillSeq = seqs[market.index]!++;
          return randomFill(write, market.index, fillSeq, (tx += 1));
        });
      });
    },
    async reverse(depth: number): Promise<void> {
      chain.splice(chain.length - depth);
      branch += 1;
      const kept = chain.at(-1)!;
      const { number, hash: blockHash, timestampSec } = kept.block;
      const head = (await lastGeneration(db.knex))!;
      await writer.tx((trx) =>
        reverseGenerations(
          trx,
          {
            headGeneration: head.generation,
            keptGeneration: kept.generation,
            block: { number, hash: blockHash, timestampMs: timestampSec * 1_000 },
            depth,
          },
          { operatorSeq: 1, timeMs: 5 },
        ),
      );
      generation += 1;
      timeSec = timestampSec;
    },
  };

  function randomFill(write: GenerationWrite, market: number, fillSeq: number, no: number): AttributedFill {
    const side = pick(2) === 0 ? 'ask' : 'bid';
    let oid = no * 100;
    const base = fillOf(1, MARKETS[market]!, fillSeq, side, [], { residualUnits: 0n, feeUnits: 0n, inputFeeUnits: 0n });
    const legs = Array.from({ length: 1 + pick(3) }, (_, level) => {
      const orders = Array.from({ length: 1 + pick(3) }, () => ({
        oid: (oid += 1),
        baseUnits: BigInt(1 + pick(1_000)) * 10n ** BigInt(pick(16)),
      }));
      const baseUnits = orders.reduce((sum, order) => sum + order.baseUnits, 0n);
      const priceTicks = BigInt(250_000 + pick(500) + level);
      const { tickLotUnits, lotUnits } = MARKETS[market]!;
      const quoteUnits = (priceTicks * tickLotUnits * baseUnits) / lotUnits;
      return { maker: MAKERS[pick(3)]!, priceTicks, baseUnits, quoteUnits, orders };
    });
    const sum = (of: (leg: (typeof legs)[number]) => bigint): bigint => legs.reduce((all, leg) => all + of(leg), 0n);
    return {
      fill: {
        ...base.fill,
        baseUnits: sum((leg) => leg.baseUnits),
        quoteUnits: sum((leg) => leg.quoteUnits),
        blockNumber: write.toBlock,
        blockHash: write.blocks[0]!.hash,
        txHash: `0x${no.toString(16).padStart(64, 'f')}`,
        timestampMs: timeSec * 1_000,
        logIndex: fillSeq,
      },
      decomposition: {
        ...base.decomposition,
        legs,
        residualUnits: 0n,
        roundingUnits: 0n,
        compressionResidualUnits: 0n,
        operatorGainUnits: 0n,
      },
      orderFills: legs.flatMap(({ maker, priceTicks, orders }) =>
        orders.map((order) => ({ ...order, maker, priceTicks, market, side, tid: order.oid, cloid: null }) as const),
      ),
    };
  }
}
