/** Histories longer than a page, in whose middle all times are the same: pages have each row once, also when blocks are taken back between two of them. */
import { expect } from 'chai';
import { commitGeneration, lastGeneration } from '../../ledger/chain/ledger-log.js';
import { reverseGenerations } from '../../ledger/chain/reversals.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import type { GenerationWrite } from '../../ledger/types.js';
import { makerFillsSchema } from '../../server/read/accounts/maker-fills.js';
import { takerSwapsSchema } from '../../server/read/accounts/taker-swaps.js';
import { fillsSchema } from '../../server/read/fills.js';
import { forEachDatabase } from '../support/db.js';
import { post, startGateway } from '../support/gateway.js';
import { OPERATOR, TAKER, blockOf, deposit, fillOf, generationOf, withFills } from '../support/generations.js';
import { MARKETS, alice, opening } from '../support/ledger-log.js';
import { USDC, WETH_USDC } from '../support/markets.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
import type { Db } from '../../ledger/types.js';

/** Fills of a block, each against the same two orders of one maker, so that a page of 1,000 and one of 2,000 parts both end within a block. */
const FILLS = 67;
const BLOCKS = 15;
const ALL = FILLS * BLOCKS;

interface WireFill {
  tid: number;
  oid: number;
  time: number;
  sz: string;
}

describe('pages', () => {
  forEachDatabase((_name, open) => {
    let db: Db;
    let server: ReadServer;

    beforeEach(async () => {
      db = await open();
      server = await startReadServer(db, MARKETS, { nowMs: () => 1_900_000_000_000 });
      await server.commit(opening());
      for (let i = 0; i < BLOCKS; i += 1) await server.commit(tradingBlock(i, i + 2));
    });

    afterEach(() => server.close());

    function tradingBlock(no: number, generation: number, change: Partial<GenerationWrite> = {}): GenerationWrite {
      const fills = Array.from({ length: FILLS }, (_, i) => {
        const parts = [1, 2].map((order) => ({
          ...{
            oid: 10 * no + order,
            maker: alice,
            priceTicks: 300_000n + BigInt(order),
            baseUnits: BigInt(1 + i) * 10n ** 14n,
          },
        }));
        const one = fillOf(generation, WETH_USDC, no * FILLS + i + 1, 'ask', parts);
        return { ...one, fill: { ...one.fill, logIndex: 10 * i } };
      });
      return generationOf(generation, { ...withFills(MARKETS, fills), ...change });
    }

    /** Follows `next` to the end. */
    async function pagesOf<T>(
      path: string,
      read: (body: unknown) => { rows: T[]; next: string | null },
    ): Promise<T[][]> {
      const found: T[][] = [];
      for (let next: string | null = ''; next !== null;) {
        const { status, body } = await server.get(`${path}&before=${next}`);
        expect(status, JSON.stringify(body)).to.equal(200);
        const page = read(body);
        found.push(page.rows);
        ({ next } = page);
      }
      return found;
    }

    const makerPage = (body: unknown) => {
      const { fills, next } = makerFillsSchema.parse(body);
      return { rows: fills, next };
    };

    it('of 1,000 have each row once, where one ends within a block and where it ends with the rows', async () => {
      const parts = await pagesOf(`/v0/makers/${alice}/fills?limit=1000`, makerPage);
      expect(parts.map((page) => page.length)).to.deep.equal([1_000, 1_000, 2 * ALL - 2_000]);
      expect(parts[0]!.at(-1)!.timestamp_ms, 'a page ends within a block').to.equal(parts[1]![0]!.timestamp_ms);
      const key = ({ fill_seq, oid }: { fill_seq: number; oid: number }): string => `${fill_seq}:${oid % 10}`;
      const due = Array.from({ length: ALL }, (_, i) => [`${ALL - i}:2`, `${ALL - i}:1`]).flat();
      expect(parts.flat().map(key)).to.deep.equal(due);
      const exact = await pagesOf(`/v0/makers/${alice}/fills?limit=670`, makerPage);
      expect(exact.map((page) => page.length)).to.deep.equal([670, 670, 670, 0]);
      const swaps = await pagesOf(`/v0/takers/${TAKER}/swaps?limit=1000`, (body) => {
        const { swaps: rows, next } = takerSwapsSchema.parse(body);
        return { rows, next };
      });
      expect(swaps.map((page) => page.length)).to.deep.equal([1_000, ALL - 1_000]);
      expect(swaps.flat().map(({ fill_seq }) => fill_seq)).to.deep.equal(
        Array.from({ length: ALL }, (_, i) => ALL - i),
      );
      const newest = fillsSchema.parse((await server.get('/v0/fills?pair=WETH-USDC&limit=1000')).body);
      const rest = await server.get(`/v0/fills?pair=WETH-USDC&limit=1000&before=${newest[0]!.fill_seq}`);
      const all = [...fillsSchema.parse(rest.body), ...newest];
      expect(all.map(({ fill_seq }) => fill_seq)).to.deep.equal(Array.from({ length: ALL }, (_, i) => i + 1));
      expect(fillsSchema.parse((await server.get('/v0/fills?pair=WETH-USDC&before=1')).body)).to.deep.equal([]);
    });

    it('go on below the row where they ended, also when that row was taken back', async () => {
      const newest = fillsSchema.parse((await server.get('/v0/fills?pair=WETH-USDC&limit=10')).body);
      const parts = makerPage((await server.get(`/v0/makers/${alice}/fills?limit=10`)).body);
      const swaps = takerSwapsSchema.parse((await server.get(`/v0/takers/${TAKER}/swaps?limit=10`)).body);
      const writer = await acquireWriter(db, 'ledger');
      const kept = BLOCKS - 2;
      const { number, hash, timestampSec } = blockOf(100 + kept + 1);
      await writer.tx(async (tx) => {
        const { generation: headGeneration } = (await lastGeneration(tx))!;
        const block = { number, hash, timestampMs: timestampSec * 1_000 };
        const request = { headGeneration, keptGeneration: kept + 1, block, depth: 2 };
        await reverseGenerations(tx, request, { operatorSeq: 1, timeMs: 5 });
      });
      const left = kept * FILLS;
      const older = async (path: string) => (await server.get(path)).body;
      const fills = fillsSchema.parse(await older(`/v0/fills?pair=WETH-USDC&limit=1000&before=${newest[0]!.fill_seq}`));
      expect(fills.map(({ fill_seq }) => fill_seq)).to.deep.equal(Array.from({ length: left }, (_, i) => i + 1));
      const after = makerPage(await older(`/v0/makers/${alice}/fills?limit=1000&before=${parts.next}`)).rows;
      expect([after[0]!.fill_seq, after[0]!.oid % 10]).to.deep.equal([left, 2]);
      const others = takerSwapsSchema.parse(await older(`/v0/takers/${TAKER}/swaps?limit=1000&before=${swaps.next}`));
      expect(others.swaps.map(({ fill_seq }) => fill_seq)).to.deep.equal(
        Array.from({ length: left }, (_, i) => left - i),
      );
      // What comes in the place of the blocks has numbers that were seen: who pages down meets each number once.
      const { generation } = (await lastGeneration(db.knex))!;
      const other = tradingBlock(kept, kept + 2);
      const renamed = { ...other, generation: generation + 1 };
      await writer.tx((tx) => commitGeneration(tx, db, renamed, { operator: OPERATOR }));
      const again = fillsSchema.parse(await older(`/v0/fills?pair=WETH-USDC&limit=1000&before=${newest[0]!.fill_seq}`));
      expect(again.map(({ fill_seq }) => fill_seq)).to.deep.equal(
        Array.from({ length: left + FILLS }, (_, i) => i + 1),
      );
      await writer.release();
    });

    it('of the wire begin with the last time of the one before, and hold 2,000 rows', async function () {
      // Every row of every page is held against the document.
      this.timeout(180_000);
      const gateway = await startGateway(db, null);
      try {
        const ask = async (fields: object): Promise<WireFill[]> =>
          (await post(`${gateway.url}/info`, { type: 'userFillsByTime', user: alice, startTime: 0, ...fields }))
            .json as WireFill[];
        /** Pages by time, without what two of them share. */
        async function walk(fields: object): Promise<WireFill[][]> {
          const pages: WireFill[][] = [];
          for (let startTime = 0; ;) {
            const page = await ask({ ...fields, startTime });
            const last = page.at(-1)!.time;
            pages.push(page);
            if (last === startTime || pages.length > 9) return pages;
            startTime = last;
          }
        }
        const unique = (pages: WireFill[][]) => [...new Map(pages.flat().map((row) => [row.tid, row])).values()];
        const lots = (rows: readonly WireFill[]): number =>
          rows.reduce(
            (sum, { sz }) => sum + Math.round(parseInt(sz.replace('.', ''), 10) / 10 ** (sz.split('.')[1]!.length - 4)),
            0,
          );
        const plain = await walk({});
        expect(plain.map((page) => page.length)).to.deep.equal([2_000, 2 * FILLS]);
        expect(plain[0]!.at(-1)!.time, 'a page ends within a block').to.equal(plain[1]!.at(-1)!.time);
        const whole = unique(plain);
        expect(whole).to.have.length(2 * ALL);
        expect(whole.map(({ time }) => time)).to.deep.equal(whole.map(({ time }) => time).sort((a, b) => a - b));
        const total = (BLOCKS * 2 * FILLS * (FILLS + 1)) / 2;
        expect(lots(whole)).to.equal(total);
        const newest = await ask({ reversed: true });
        expect(newest.map(({ tid }) => tid)).to.deep.equal(
          whole
            .map(({ tid }) => tid)
            .reverse()
            .slice(0, 2_000),
        );
        // Merged, no block is cut in two: what a page can't hold whole is left for the next one.
        const merged = await walk({ aggregateByTime: true });
        expect(merged[0]).to.have.length(2 * (BLOCKS - 1));
        const orders = unique(merged);
        expect(orders).to.have.length(2 * BLOCKS);
        expect(new Set(orders.map(({ oid }) => oid)).size).to.equal(2 * BLOCKS);
        expect(lots(orders)).to.equal(total);
        const latest = (await post(`${gateway.url}/info`, { type: 'userFills', user: alice, aggregateByTime: true }))
          .json as WireFill[];
        expect(latest, 'the oldest block of the latest 2,000 is cut, too').to.deep.equal(
          orders.toSorted((a, b) => b.time - a.time || b.oid - a.oid).slice(0, 2 * (BLOCKS - 1)),
        );
        const [from, to] = [whole[0]!.time, whole[2 * FILLS]!.time];
        expect(await ask({ startTime: from, endTime: to }), 'both bounds are included').to.have.length(4 * FILLS);
        expect(await ask({ startTime: from + 1, endTime: to - 1 })).to.have.length(0);
      } finally {
        await gateway.stop();
      }
    });

    it('of what was paid in hold 2,000 rows, and the next one begins with the last time', async () => {
      let generation = BLOCKS + 2;
      for (let no = 0; no < 3; no += 1, generation += 1) {
        const paid = Array.from({ length: 700 }, (_, i) => deposit(generation, i, alice, USDC.address, BigInt(i + 1)));
        await server.commit({
          ...generationOf(generation),
          custody: paid.flatMap(({ custody }) => custody),
          entries: paid.flatMap(({ entries }) => entries),
          netCapital: paid.flatMap(({ netCapital }) => netCapital),
        });
      }
      const gateway = await startGateway(db, null);
      try {
        const since = blockOf(100 + BLOCKS + 2).timestampSec * 1_000;
        const ask = async (startTime: number) =>
          (await post(`${gateway.url}/info`, { type: 'userNonFundingLedgerUpdates', user: alice, startTime })).json as {
            time: number;
            hash: string;
          }[];
        const first = await ask(since);
        const second = await ask(first.at(-1)!.time);
        expect([first.length, second.length]).to.deep.equal([2_000, 700]);
        expect(new Set([...first, ...second].map(({ hash }) => hash)).size).to.equal(2_100);
      } finally {
        await gateway.stop();
      }
    });
  });
});
