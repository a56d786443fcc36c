import { expect } from 'chai';
import type { Address } from '../../../core/types.js';
import { candlesSchema } from '../../../server/read/candles.js';
import { fillsSchema } from '../../../server/read/fills.js';
import { makerFillsSchema } from '../../../server/read/accounts/maker-fills.js';
import { takerSwapsSchema } from '../../../server/read/accounts/taker-swaps.js';
import { forEachDatabase } from '../../support/db.js';
import { OPERATOR, TAKER, fillOf, generationOf, withFills } from '../../support/generations.js';
import { BUY, ETHER, MARKETS, SELL, alice, bob, opening } from '../../support/ledger-log.js';
import { WETH_DAI, WETH_USDC } from '../../support/markets.js';
import { startReadServer, type ReadServer } from '../../support/api/read-server.js';

const OTHER: Address = `0x${'7'.repeat(40)}`;
/** Fills of WETH-USDC, two in each generation: a buy of alice and bob, and a sell to alice alone, sent by another taker. */
const GENERATIONS = 40;

describe('history', () => {
  forEachDatabase((_name, open) => {
    let server: ReadServer;
    /** The minute after the one of the newest fill, in which nothing was traded. */
    const NOW_MS = (1_800_000_000 + 2 * 142 + 60) * 1_000;

    beforeEach(async () => {
      const db = await open();
      server = await startReadServer(db, MARKETS, { nowMs: () => NOW_MS });
      await server.commit(opening());
      for (let i = 0; i < GENERATIONS; i += 1) {
        const n = i + 2;
        const small = SELL.map((part) => ({ ...part, oid: part.oid + 10 * i, baseUnits: part.baseUnits / 100n }));
        const sold = BUY.map((part) => ({ ...part, oid: part.oid + 10 * i, baseUnits: part.baseUnits / 100n }));
        const buy = fillOf(n, WETH_USDC, 2 * i + 1, 'ask', sold);
        const sell = fillOf(n, WETH_USDC, 2 * i + 2, 'bid', small);
        const fills = [buy, { ...sell, fill: { ...sell.fill, taker: OTHER, recipient: OTHER } }];
        if (i === 5) fills.push(fillOf(n, WETH_DAI, 1, 'ask', [{ ...sold[0]!, oid: 9_999, priceTicks: 3_000n }]));
        await server.commit(generationOf(n, withFills(MARKETS, fills)));
      }
    });

    afterEach(() => server.close());

    /** Follows `next` to the end. */
    async function pages(path: string, read: (body: unknown) => { rows: unknown[]; next: string | null }) {
      const rows: unknown[] = [];
      for (let next: string | null = ''; next !== null;) {
        const { status, body } = await server.get(`${path}&before=${next}`);
        expect(status, JSON.stringify(body)).to.equal(200);
        const page = read(body);
        rows.push(...page.rows);
        ({ next } = page);
      }
      return rows as Record<string, unknown>[];
    }

    const text = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${server.url}${path}`, { headers });
      return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
    };

    it('pages the fills of a market to the first one, by maker and by taker, too', async () => {
      const all: number[] = [];
      for (let before = ''; before !== '1';) {
        const { body } = await server.get(
          `/v0/fills?pair=WETH-USDC&limit=7${before === '' ? '' : `&before=${before}`}`,
        );
        const seqs = fillsSchema.parse(body).map((fill) => fill.fill_seq);
        expect(seqs).to.have.length.within(1, 7);
        all.unshift(...seqs);
        before = `${seqs[0]}`;
      }
      expect(all).to.deep.equal(Array.from({ length: 2 * GENERATIONS }, (_, i) => i + 1));
      const seqsOf = async (query: string) =>
        fillsSchema
          .parse((await server.get(`/v0/fills?pair=WETH-USDC&limit=5&${query}`)).body)
          .map((one) => one.fill_seq);
      expect(await seqsOf(`taker=${OTHER}`)).to.deep.equal([72, 74, 76, 78, 80]);
      expect(await seqsOf(`taker=${TAKER}&before=9`)).to.deep.equal([1, 3, 5, 7]);
      expect(await seqsOf(`maker=${bob}&before=9`)).to.deep.equal([1, 3, 5, 7]);
      expect(await seqsOf(`maker=${alice.toUpperCase().replace('0X', '0x')}&before=4`)).to.deep.equal([1, 2, 3]);
      expect(await seqsOf(`maker=${OTHER}`)).to.deep.equal([]);
      for (const query of [
        'limit=1001',
        'limit=0',
        'before=x',
        `maker=${alice}&taker=${OTHER}`,
        'maker=0x1',
        'format=xml',
      ])
        expect((await server.get(`/v0/fills?pair=WETH-USDC&${query}`)).status, query).to.equal(400);
    });

    it("pages a maker's fills over all markets, with what each was paid and earned", async () => {
      const path = `/v0/makers/${alice}/fills?limit=9`;
      const rows = await pages(path, (body) => {
        const { fills, next } = makerFillsSchema.parse(body);
        return { rows: fills, next };
      });
      expect(rows).to.have.length(3 * GENERATIONS + 1);
      expect(new Set(rows.map((row) => row.tid)).size).to.equal(rows.length);
      const times = rows.map((row) => row.timestamp_ms as number);
      expect(times).to.deep.equal([...times].sort((a, b) => b - a));
      expect(rows.at(-1)).to.include({
        ...{ pair: 'WETH-USDC', fill_seq: 1, oid: 1, side: 'ask', price: '3000.01', base_amount: '0.01' },
        ...{ quote_amount: '30.0001', realised_pnl: '0', taker: TAKER },
      });
      expect(rows.filter((row) => row.side === 'bid').every((row) => row.realised_pnl !== '0')).to.equal(true);
      const dai = await pages(`${path}&pair=WETH-DAI`, (body) => {
        const { fills, next } = makerFillsSchema.parse(body);
        return { rows: fills, next };
      });
      expect(dai.map((row) => row.oid)).to.deep.equal([9_999]);
      const usdc = await pages(`${path}&pair=WETH-USDC`, (body) => {
        const { fills, next } = makerFillsSchema.parse(body);
        return { rows: fills, next };
      });
      const of = (pair: string) => rows.filter((row) => row.pair === pair).map((row) => row.tid);
      expect(usdc.map((row) => row.tid)).to.deep.equal(of('WETH-USDC'));
      // A place among the fills of another market says how far back in time it is.
      const place = dai[0]!;
      const other = `${place.timestamp_ms as number}-1-${place.fill_seq as number}-0`;
      const { body } = await server.get(`/v0/makers/${alice}/fills?limit=100&pair=WETH-USDC&before=${other}`);
      const older = usdc.filter((row) => (row.timestamp_ms as number) <= (place.timestamp_ms as number));
      expect(makerFillsSchema.parse(body).fills.map((row) => row.tid)).to.deep.equal(older.map((row) => row.tid));
      expect((await server.get(`/v0/makers/${alice}/fills?before=1-2`)).status).to.equal(400);
    });

    it('pages the swaps of a taker, signed orders among them', async () => {
      const fill = fillOf(GENERATIONS + 2, WETH_USDC, 2 * GENERATIONS + 1, 'ask', [
        { ...BUY[0]!, oid: 777, baseUnits: ETHER / 100n },
      ]);
      const order = {
        ...{ owner: OTHER, nonce: 1n, recipient: OTHER, tokenIn: WETH_USDC.quote.address, tokenOut: OPERATOR },
        ...{ amountInUnits: 2_500_000n, amountOutUnits: 17n, feeUnits: 1_000n, feeInSwap: true },
        ...{ partner: null, appData: null },
        ...{ blockNumber: 102 + GENERATIONS, txHash: fill.fill.txHash, logIndex: 999 },
      };
      await server.commit(generationOf(GENERATIONS + 2, { ...withFills(MARKETS, [fill]), settledOrders: [order] }));
      const rows = await pages(`/v0/takers/${OTHER}/swaps?limit=6`, (body) => {
        const { swaps, next } = takerSwapsSchema.parse(body);
        return { rows: swaps, next };
      });
      expect(rows).to.have.length(GENERATIONS + 1);
      expect(rows[0]).to.deep.equal({
        ...{ kind: 'signed', pair: null, fill_seq: null, token_in: 'USDC', amount_in: '2.5' },
        ...{ token_out: OPERATOR, amount_out: '17', fee_token: 'USDC', fee: '0.001', recipient: OTHER },
        ...{ block_number: 102 + GENERATIONS, tx_hash: fill.fill.txHash, timestamp_ms: fill.fill.timestampMs },
        cursor: `${102 + GENERATIONS}-999`,
      });
      expect(rows.slice(1).map((row) => row.fill_seq)).to.deep.equal(
        Array.from({ length: GENERATIONS }, (_, i) => 2 * (GENERATIONS - i)),
      );
    });

    it('goes on with a download that was cut off after the last row that had come', async () => {
      const lines = async (path: string) => (await text(path)).text.trimEnd().split('\n');
      const cursorIn: Record<string, (row: string) => string> = {
        ndjson: (row) => (JSON.parse(row) as { cursor: string }).cursor,
        csv: (row) => row.split(',').at(-1)!,
      };
      for (const path of [
        `/v0/makers/${alice}/fills`,
        `/v0/makers/${alice}/fills?pair=WETH-USDC`,
        `/v0/takers/${OTHER}/swaps`,
      ])
        for (const [format, cursorOf] of Object.entries(cursorIn)) {
          const asked = `${path}${path.includes('?') ? '&' : '?'}format=${format}`;
          const all = await lines(asked);
          expect(all.length, asked).to.be.greaterThan(8);
          for (const came of [2, 7, all.length - 1]) {
            const rest = await lines(`${asked}&before=${cursorOf(all[came - 1]!)}`);
            expect(rest.slice(format === 'csv' ? 1 : 0), `${asked} after ${came}`).to.deep.equal(all.slice(came));
          }
        }
    });

    it('downloads all rows as NDJSON or CSV', async () => {
      const ndjson = await text('/v0/fills?pair=WETH-USDC&format=ndjson');
      expect([ndjson.status, ndjson.type]).to.deep.equal([200, 'application/x-ndjson; charset=utf-8']);
      const rows = ndjson.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { fill_seq: number });
      expect(rows.map((row) => row.fill_seq)).to.deep.equal(Array.from({ length: 80 }, (_, i) => 80 - i));
      const csv = await text(`/v0/makers/${alice}/fills`, { accept: 'text/csv' });
      expect(csv.type).to.equal('text/csv; charset=utf-8');
      const [head, ...lines] = csv.text.trimEnd().split('\n');
      expect(head).to.match(/^pair,fill_seq,tid,oid,/);
      expect(lines).to.have.length(121);
      const limited = await text(`/v0/fills?pair=WETH-USDC&format=csv&limit=3&taker=${OTHER}`);
      expect(
        limited.text
          .trimEnd()
          .split('\n')
          .slice(1)
          .map((line) => line.split(',')[1]),
      ).to.deep.equal(['80', '78', '76']);
      const rowsOf = async (path: string) => (await text(path)).text.trimEnd().split('\n').length;
      expect(await rowsOf(`/v0/makers/${alice}/fills?format=ndjson&limit=7`)).to.equal(7);
      expect(await rowsOf(`/v0/takers/${TAKER}/swaps?format=ndjson&limit=1`)).to.equal(1);
      // A limit above the rows, and above those of a page, gives all of them.
      expect(await rowsOf(`/v0/makers/${alice}/fills?format=ndjson&limit=5000`)).to.equal(121);
      for (const limit of ['0', '-1', 'x'])
        expect((await text(`/v0/makers/${alice}/fills?format=csv&limit=${limit}`)).status, limit).to.equal(400);
    });

    it('serves candles without gaps, and says what is too many', async () => {
      const { body } = await server.get('/v0/candles/WETH-USDC?interval=1m');
      const { candles } = candlesSchema.parse(body);
      expect(candles.reduce((sum, one) => sum + one.trades, 0)).to.equal(4 * GENERATIONS);
      expect(candles[0]).to.include({ open: '3000.01', high: '3000.02', low: '2999.99' });
      expect(candles.at(-1)!.open_ms).to.equal(NOW_MS - (NOW_MS % 60_000));
      candles.forEach((one, i) => expect(one.open_ms).to.equal(candles[0]!.open_ms + i * 60_000));
      expect(candles.at(-1)).to.include({ trades: 0, base_volume: '0', open: '2999.99', close: '2999.99' });
      const [day] = candlesSchema.parse(
        (await server.get('/v0/candles/WETH-USDC?interval=1d&from=1799000000000')).body,
      ).candles;
      expect(day).to.include({ trades: 4 * GENERATIONS, close: '2999.99' });
      const span = (from: number, to: number) => server.get(`/v0/candles/WETH-USDC?interval=1m&from=${from}&to=${to}`);
      expect((await span(0, 5_000 * 60_000 - 1)).status).to.equal(200);
      expect((await span(0, 5_000 * 60_000)).status).to.equal(400);
      for (const query of ['interval=6h', 'interval=1m&from=-1', 'interval=1m&to=99999999999999999'])
        expect((await server.get(`/v0/candles/WETH-USDC?${query}`)).status, query).to.equal(400);
      expect((await server.get('/v0/candles/WETH-XYZ?interval=1m')).status).to.equal(404);
      const none = candlesSchema.parse((await server.get('/v0/candles/WETH-DAI?interval=1h&to=1000')).body);
      expect(none.candles).to.deep.equal([]);
    });
  });
});
