/** What answers of the read API cost is counted per address, beside requests, and honest clients keep within it. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { settingsSchema } from '../../../cli/config.js';
import type { Address, ChainFill } from '../../../core/types.js';
import { openOf } from '../../../core/market-data/intervals.js';
import type { Candle } from '../../../core/market-data/candles.js';
import type { MakerActivity } from '../../../ledger/accounts/reads.js';
import { totalOf } from '../../../ledger/accounts/sums.js';
import { MAKER_HOURS, MARKET_HOURS } from '../../../ledger/accounts/tables.js';
import type { Db } from '../../../ledger/types.js';
import { readLimits } from '../../../server/rate-limit.js';
import { COSTS, costsOf } from '../../../server/read/costs.js';
import type { PostedCurve, ReadStore } from '../../../server/read/deps.js';
import { READ_ENDPOINTS } from '../../../server/read/endpoints.js';
import { createReadStore } from '../../../server/read/store.js';
import { forOneDatabase } from '../../support/db.js';
import { fillOf, generationOf } from '../../support/generations.js';
import { BUY } from '../../support/ledger-log.js';
import { MAKERS, WETH_DAI, WETH_USDC } from '../../support/markets.js';
import { startReadServer, type ReadServer } from '../../support/api/read-server.js';

const MARKETS = [WETH_USDC, WETH_DAI];
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const NOW_MS = 1_700_006_400_000;
const [maker] = MAKERS as [Address];

forOneDatabase((name, open) =>
  describe(`answers of the read API that cost much, ${name}`, () => {
    let db: Db;
    let server: ReadServer;
    let nowMs: number;
    const ended: (() => Promise<void>)[] = [];

    beforeEach(async () => {
      db = await open();
      nowMs = NOW_MS;
    });

    afterEach(async () => {
      for (const end of ended.splice(0)) await end();
    });

    async function start(perMinute: number, change: Partial<ReadStore> = {}): Promise<void> {
      const store = { ...createReadStore(db), ...change };
      server = await startReadServer(db, MARKETS, { store, limits: readLimits(perMinute), nowMs: () => nowMs });
      ended.push(server.close);
    }

    async function ask(path: string): Promise<{ status: number; text: string; retryAfter: string | undefined }> {
      const asked = get(server.url + path);
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      const text = (await response.toArray()).map(String).join('');
      return { status: response.statusCode ?? 0, text, retryAfter: response.headers['retry-after'] };
    }

    const statusOf = async (path: string): Promise<number> => (await ask(path)).status;

    const candlesOf = (count: number): Candle[] =>
      Array.from({ length: count }, (_, i) => ({
        ...{ interval: '1m', openMs: openOf('1m', NOW_MS) - (count - i) * MINUTE_MS },
        ...{ openTicks: 1n, highTicks: 1n, lowTicks: 1n, closeTicks: 1n, baseUnits: 1n, quoteUnits: 1n, trades: 1 },
      }));
    const fillsOf = (count: number): ChainFill[] => {
      const { fill } = fillOf(2, WETH_USDC, 1, 'ask', BUY);
      return Array.from({ length: count }, (_, i) => ({ ...fill, fillSeq: count - i }));
    };

    const idleActivity: MakerActivity = {
      market: 0,
      total: totalOf(MAKER_HOURS, []),
      all: totalOf(MARKET_HOURS, []),
      ...{ hours: [], openBeforeUnits: 0n, position: null, middle: null },
    };

    /** A posted curve with 200 orders behind it. */
    function curveOf(facts: Pick<PostedCurve, 'landedSeq' | 'isProlonged'>): Partial<ReadStore> {
      const orders = Array.from({ length: 100 }, (_, i) => ({ oid: i + 1, maker, priceTicks: 1n, sizeLots: 1n }));
      const volumes = { askVolumeUnits: 0n, bidVolumeUnits: 0n };
      const posted: PostedCurve = {
        post: {
          ...{
            market: 0,
            seq: 1,
            era: 0,
            baseSeq: 1,
            postedSeq: 1,
            deadlineSec: 100,
            snapAskUnits: 0n,
            snapBidUnits: 0n,
          },
          ...{ wordsHash: '0x01', blockNumber: 1, blockTimestampSec: 1, txHash: '0x01' },
        },
        publication: null,
        raised: { ask: 0n, bid: 0n },
        snapshot: { market: 0, fillSeq: 1, ...volumes, asks: orders, bids: orders },
        headSec: 10,
        ...facts,
      };
      return { postedCurve: () => Promise.resolve(posted) };
    }

    it('are refused beyond the points of their address until its window ends, and others are not', async () => {
      await start(100, { candles: () => Promise.resolve(candlesOf(3_000)) });
      const path = '/v0/candles/WETH-USDC?interval=1m';
      // Two points, and fifty for the rows.
      expect([await statusOf(path), await statusOf(path)]).to.deep.equal([200, 200]);
      const refused = await ask(path);
      expect([refused.status, refused.retryAfter]).to.deep.equal([429, '60']);
      expect(JSON.parse(refused.text)).to.deep.equal({
        error: {
          code: 'RATE_LIMITED',
          message: 'More than 100 points of costly answers in 60 s: wait for retry-after',
        },
      });
      for (const other of ['/v0/pairs', '/v0/status', '/v0/fees']) expect(await statusOf(other), other).to.equal(200);
      expect(await statusOf('/v0/operator/halts')).to.equal(429);
      nowMs += MINUTE_MS;
      expect(await statusOf(path)).to.equal(200);
    });

    it('take points by what they hold, before they are made and after', async () => {
      const spans = `from=${NOW_MS - 39 * DAY_MS}&to=${NOW_MS}`;
      const fills = fillsOf(1_000);
      const activity = (await createReadStore(db).makerActivity(maker, [0, 1], { fromMs: 0, toMs: 1 })).length;
      expect(activity).to.equal(0);
      const active: Partial<ReadStore> = { makerActivity: () => Promise.resolve([idleActivity]) };
      const cases: [path: string, points: number, change?: Partial<ReadStore>][] = [
        ['/v0/candles/WETH-USDC?interval=1m', 2],
        ['/v0/candles/WETH-USDC?interval=1m', 2 + 83, { candles: () => Promise.resolve(candlesOf(5_000)) }],
        ['/v0/fills?pair=WETH-USDC', 1],
        ['/v0/fills?pair=WETH-USDC&limit=1000', 1 + 50, { fillsPage: () => Promise.resolve(fills) }],
        [
          '/v0/fills?pair=WETH-USDC',
          1 + 12,
          { newestFills: () => Promise.resolve({ key: '', fills: fills.slice(0, 256) }) },
        ],
        [`/v0/makers/${maker}/fills`, 2],
        [`/v0/takers/${maker}/swaps`, 2],
        [`/v0/makers/${maker}/performance?${spans}`, 2],
        // All that was traded since the span is read, too.
        [`/v0/makers/${maker}/performance?from=${NOW_MS - 39 * DAY_MS}&to=${NOW_MS - 30 * DAY_MS}`, 2 + 19, active],
        [`/v0/makers/${maker}/performance?${spans}`, 2 + 20, active],
        [`/v0/takers/${maker}/summary?${spans}`, 2],
        [`/v0/operator/summary?${spans}`, 2 + 40],
        [`/v0/operator/summary?pair=WETH-DAI&${spans}`, 2 + 20],
        ['/v0/operator/halts', 2],
        ['/v0/fills/1/decomposition?pair=WETH-USDC', 4],
        ['/v0/curves/WETH-USDC/1', 4],
        ['/v0/curves/WETH-USDC/1', 4 + 4, curveOf({ landedSeq: 2, isProlonged: false })],
        // A book that is not shown tells nothing of its size.
        ['/v0/curves/WETH-USDC/1', 4, curveOf({ landedSeq: 2, isProlonged: true })],
        ['/v0/curves/WETH-USDC/1', 4, curveOf({ landedSeq: 1, isProlonged: false })],
        [`/v0/makers/${maker}/withdrawals`, 2],
        ['/v0/candles/WETH-USDC?interval=never', 2],
        ['/v0/pairs', 0],
        [`/v0/makers/${maker}/limits`, 0],
      ];
      for (const [path, points, change] of cases) {
        await start(1_000, change);
        await ask(path);
        // What is left is what a taker of single points gets.
        const ctx = { ip: '127.0.0.1', set: () => undefined, response: { get: () => '1000' } } as never;
        let left = 0;
        try {
          for (; left <= 1_000; left += 1) costsOf(server.deps).take(ctx, COSTS.fills);
        } catch {
          // Spent.
        }
        expect(1_000 - left, path).to.equal(points);
      }
    });

    it('have what they may cost set aside while they are made, so that many at a time are no more than some', async () => {
      const reads: PromiseWithResolvers<Candle[]>[] = [];
      const candles = (): Promise<Candle[]> => {
        const read = Promise.withResolvers<Candle[]>();
        reads.push(read);
        return read.promise;
      };
      await start(200, { candles });
      // Each may take 2 and 83 points.
      const path = '/v0/candles/WETH-USDC?interval=1m';
      const answers = Array.from({ length: 10 }, () => ask(path));
      const refused = (await Promise.all(answers.map((answer) => Promise.race([answer, delay(1_000, null)])))).filter(
        (answer) => answer !== null,
      );
      expect(refused.map(({ status, retryAfter }) => [status, retryAfter])).to.deep.equal(
        Array.from({ length: 7 }, () => [429, '1']),
      );
      expect(JSON.parse(refused[0]!.text)).to.have.nested.property(
        'error.message',
        'Answers under way may take more than 200 points: wait for retry-after',
      );
      expect(reads).to.have.length(3);
      expect(await statusOf(`/v0/makers/${maker}/fills?limit=10`), 'of another kind').to.equal(429);
      expect(await statusOf('/v0/pairs')).to.equal(200);
      // Also one that fails gives back what it does not cost.
      reads[0]!.reject(new Error('no database'));
      reads[1]!.resolve([]);
      reads[2]!.resolve([]);
      const statuses = (await Promise.all(answers)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).to.have.length(2);
      expect(await statusOf(`/v0/makers/${maker}/fills?limit=10`)).to.equal(200);
    });

    it('may cost more than a minute has, one at a time', async () => {
      await start(20);
      expect(await statusOf('/v0/candles/WETH-USDC?interval=1m')).to.equal(200);
      expect(await statusOf(`/v0/makers/${maker}/fills?limit=1000`)).to.equal(200);
    });

    it('are made once for all who ask the same of the platform, and once more after a generation or a while', async () => {
      const { operatorSummary, stops } = createReadStore(db);
      let [summaries, halts] = [0, 0];
      await start(1_000, {
        operatorSummary: (...of) => {
          summaries += 1;
          return operatorSummary(...of);
        },
        stops: (limits) => {
          halts += 1;
          return stops(limits);
        },
      });
      const path = '/v0/operator/summary';
      const answers = await Promise.all([path, path, path].map(ask));
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
      expect((await server.get(path)).body, 'as it is described').to.deep.equal(JSON.parse(answers[0]!.text));
      expect(summaries).to.equal(1);
      await ask(`${path}?pair=WETH-DAI`);
      await ask(path);
      expect(summaries, 'of other pairs').to.equal(3);
      await server.commit(generationOf(1, { listed: MARKETS }));
      await ask(path);
      expect(summaries, 'after a generation').to.equal(4);
      nowMs += 10_000;
      await ask(path);
      expect(summaries, 'after a while').to.equal(5);

      for (let i = 0; i < 3; i++) expect(await statusOf('/v0/operator/halts')).to.equal(200);
      expect(halts).to.equal(1);
      nowMs += 1_000;
      expect((await server.get('/v0/operator/halts')).body).to.deep.equal({ halts: [], reversals: [] });
      expect(halts).to.equal(2);
    });

    it('say in their description what they take', () => {
      const priced = READ_ENDPOINTS.filter(({ description }) => /It takes (a|\d+) points?/.test(description ?? ''));
      expect(priced).to.have.length(Object.keys(COSTS).length);
      const candles = priced.find(({ path }) => path.startsWith('/v0/candles'));
      expect(candles?.description).to.match(/ It takes 2 points, and one more for each full 60 candles\.$/);
      for (const { refusals, path } of priced) expect(refusals[429], path).to.include('points');
    });

    it('are listed in the guide with what they take', () => {
      const guide = readFileSync(new URL('../../../docs/makers.md', import.meta.url), 'utf8');
      const rows = guide.split('\n').filter((line) => /^\| \d+ \| `\/v0\//.test(line));
      const listed = new Map(
        rows.flatMap((row) => {
          const [, base = '', paths = '', more = ''] = row.split('|').map((cell) => cell.trim());
          return paths.split(', ').map((path) => [path.replaceAll('`', ''), [base, /^\d+/.exec(more)?.[0]]] as const);
        }),
      );
      const served = READ_ENDPOINTS.flatMap(({ path, description = '' }) => {
        const [, base, per] = /It takes (a|\d+) points?(?:, and one more for each full (\d+))?/.exec(description) ?? [];
        return base === undefined ? [] : [[path, [base.replace('a', '1'), per]] as const];
      });
      expect(listed).to.deep.equal(new Map(served));
    });

    it('leave room for several viewers of the console behind one address', () => {
      const { READ_REQUESTS_PER_MINUTE: points } = settingsSchema.parse({});
      const of = (cost: { base: number; per?: number }, units = 0): number =>
        cost.base + (cost.per === undefined ? 0 : Math.floor(units / cost.per));
      const pairs = 10;
      const everySec = (sec: number, cost: number): number => (60 / sec) * cost;
      // As often as web/src asks for each.
      const maker =
        everySec(4, of(COSTS.makerFills, 20)) +
        everySec(8, of(COSTS.performance, 30 * pairs)) +
        everySec(2, of(COSTS.withdrawals));
      const market = everySec(3, of(COSTS.candles, 90)) + everySec(3, of(COSTS.fills, 256));
      const swap = everySec(3, of(COSTS.takerSwaps, 20));
      const operator = everySec(10, of(COSTS.operatorSummary, 30 * pairs) + of(COSTS.operatorHalts));
      expect(2 * (maker + market + swap + operator)).to.be.lessThan(points);
    });
  }),
);
