import { expect } from 'chai';
import type { Address } from '../../core/types.js';
import { openDb } from '../../ledger/db/db.js';
import type { Db, GenerationWrite } from '../../ledger/types.js';
import { bookSchema } from '../../server/read/book.js';
import { decompositionSchema } from '../../server/read/decomposition.js';
import type { ReadDeps } from '../../server/read/deps.js';
import { fillsSchema } from '../../server/read/fills.js';
import { healthSchema } from '../../server/read/health.js';
import { limitsSchema } from '../../server/read/limits.js';
import { errorSchema } from '../../server/read/schemas.js';
import { forEachDatabase, locationOf } from '../support/db.js';
import { blockOf, deposit, fillOf, generationOf, OPERATOR, TAKER, withFills } from '../support/generations.js';
import { DEPLOYMENT_BLOCK, startReadServer, type ReadServer } from '../support/api/read-server.js';
import { DAI, MAKERS, USDC, WETH, WETH_DAI, WETH_USDC } from '../support/markets.js';

const MARKETS = [WETH_USDC, WETH_DAI];
const [alice, bob] = MAKERS as [Address, Address];
const WEI = 10n ** 18n;

type World = ReadServer;

forEachDatabase((name, open) => {
  describe(`Read API on ${name}`, () => {
    let listening: ReadServer | null = null;
    let db: Db;
    let state: { readiness: ReturnType<ReadDeps['readiness']>; watcher: ReturnType<ReadDeps['watcher']> };

    afterEach(async () => {
      await listening?.close();
      listening = null;
    });

    async function start(markets = MARKETS): Promise<World> {
      db = await open();
      state = {
        readiness: { ready: false, reason: 'missing_canonical_state' },
        watcher: { targetBlock: null, head: null, nextBlock: DEPLOYMENT_BLOCK, lastScanMs: null },
      };
      const server = await startReadServer(db, markets, {
        readiness: () => state.readiness,
        watcher: () => state.watcher,
      });
      listening = server;
      return server;
    }

    const listing = () => generationOf(1, { listed: MARKETS });

    /** Deposits of both makers, then whatever `change` adds in the generation after them. */
    async function funded(world: World, change: Partial<GenerationWrite> = {}): Promise<void> {
      const deposits = [
        deposit(2, 0, alice, WETH.address, 10n * WEI),
        deposit(2, 1, bob, USDC.address, 50_000_000_000n),
      ];
      await world.commit(listing());
      await world.commit(
        generationOf(2, {
          custody: deposits.flatMap((one) => one.custody),
          entries: deposits.flatMap((one) => one.entries),
          netCapital: deposits.flatMap((one) => one.netCapital),
        }),
      );
      await world.commit(generationOf(3, change));
    }

    it('answers before the first scan, with the reason why it is not ready', async () => {
      const { get } = await start();
      const health = healthSchema.parse((await get('/health')).body);
      expect(health.block_number).to.equal(null);
      const { status, body } = await get(`/v0/makers/${alice}/limits`);
      const limits = limitsSchema.parse(body);
      expect(status).to.equal(200);
      expect([limits.ledger.ready, limits.ledger.reason]).to.deep.equal([false, 'missing_canonical_state']);
      expect([limits.ledger.next_block, limits.ledger.scanned_block_hash]).to.deep.equal([DEPLOYMENT_BLOCK, null]);
      expect(limits.ledger.durable_inventory_revision).to.equal(0);
      expect(limits.ledger.fill_seqs).to.deep.equal({ 'WETH-USDC': 0, 'WETH-DAI': 0 });
      expect(limits.watcher).to.deep.equal({ target_block: null, head: null, next_block: 101, lag_blocks: null });
    });

    it('describes one durable generation, and counts what it does not include yet', async () => {
      const world = await start();
      await funded(world);
      state = {
        readiness: { ready: true, reason: null },
        // Later than the generation: a scan that found no new block is one, too.
        watcher: { targetBlock: 107, head: 108, nextBlock: 104, lastScanMs: 1_700_000_123_456 },
      };
      const limits = limitsSchema.parse((await world.get(`/v0/makers/${alice}/limits`)).body);
      const block = blockOf(103);
      expect(limits).to.deep.equal({
        maker: alice,
        ledger: {
          ready: true,
          reason: null,
          deployment_id: '0123456789abcdef',
          capital_flow_start_block: DEPLOYMENT_BLOCK,
          inventory_revision: 3,
          durable_inventory_revision: 3,
          next_block: 104,
          scanned_block_hash: block.hash,
          observed_head: 103,
          observed_head_timestamp_ms: block.timestampSec * 1_000,
          last_successful_scan_ms: 1_700_000_123_456,
          fill_seqs: { 'WETH-USDC': 0, 'WETH-DAI': 0 },
          balances: [
            { token: 'WETH', balance: '10', reserved: '0', available: '10', net_capital: '10' },
            { token: 'USDC', balance: '0', reserved: '0', available: '0', net_capital: '0' },
            { token: 'DAI', balance: '0', reserved: '0', available: '0', net_capital: '0' },
          ],
        },
        watcher: { target_block: 107, head: 108, next_block: 104, lag_blocks: 5 },
      });
    });

    it('answers while another process holds the write lock and a write of this one waits for it', async () => {
      const world = await start();
      await funded(world);
      const { url, schema } = locationOf(db);
      const other = await openDb(url, { schema });
      try {
        let release = (): void => undefined;
        const released = new Promise<void>((resolve) => (release = resolve));
        const holding = new Promise<void>((resolve) => {
          void other.knex.transaction(async (tx) => {
            await tx('meta').insert({ key: 'held', value: 'x' });
            resolve();
            await released;
          });
        });
        await holding;
        let isWritten = false;
        const write = db.knex.transaction(async (tx) => {
          await tx('meta').insert({ key: 'waits', value: 'x' });
          isWritten = db.kind === 'sqlite';
        });
        for (const path of [`/v0/makers/${alice}/limits`, '/v0/fills?pair=WETH-USDC', '/v0/status', '/v0/fees']) {
          expect((await world.get(path)).status, path).to.equal(200);
        }
        expect(isWritten, 'the write has its turn only after the lock').to.equal(false);
        release();
        await write;
      } finally {
        await other.close();
      }
    });

    it('never shows less than nothing as available', async () => {
      const world = await start();
      const excess = 1n;
      await funded(world, {
        reservations: [{ account: alice, token: WETH.address, deltaUnits: 10n * WEI + excess }],
      });
      const { ledger } = limitsSchema.parse((await world.get(`/v0/makers/${alice}/limits`)).body);
      expect(ledger.balances[0]).to.deep.equal({
        token: 'WETH',
        balance: '10',
        reserved: '10.000000000000000001',
        available: '0',
        net_capital: '10',
      });
    });

    it("shows the operator's debt with its sign", async () => {
      const world = await start();
      const sell = fillOf(3, WETH_USDC, 1, 'bid', [{ oid: 1, maker: bob, priceTicks: 250_000n, baseUnits: WEI }], {
        residualUnits: 1_500_001n,
        feeUnits: 0n,
        inputFeeUnits: 0n,
      });
      await funded(world, withFills(MARKETS, [sell]));
      const { ledger } = limitsSchema.parse((await world.get(`/v0/makers/${OPERATOR}/limits`)).body);
      const usdc = ledger.balances.find(({ token }) => token === 'USDC');
      expect([usdc?.balance, usdc?.available]).to.deep.equal(['-1.500001', '0']);
      expect(ledger.fill_seqs).to.deep.equal({ 'WETH-USDC': 1, 'WETH-DAI': 0 });
    });

    it('shows a fill with its fee in the output token, and explains it', async () => {
      const world = await start();
      const sell = fillOf(3, WETH_USDC, 1, 'bid', [{ oid: 1, maker: bob, priceTicks: 250_025n, baseUnits: WEI / 3n }], {
        residualUnits: -5n,
        feeUnits: 8_334n,
        inputFeeUnits: 0n,
      });
      sell.decomposition.roundingUnits = 0n;
      sell.decomposition.compressionResidualUnits = -5n;
      const buy = fillOf(3, WETH_USDC, 2, 'ask', [{ oid: 2, maker: alice, priceTicks: 250_100n, baseUnits: WEI }], {
        residualUnits: 7n,
        feeUnits: 10n ** 15n,
        inputFeeUnits: 0n,
      });
      await funded(world, withFills(MARKETS, [sell, buy]));
      const fills = fillsSchema.parse((await world.get('/v0/fills?pair=WETH-USDC')).body);
      expect(fills.map((fill) => [fill.fill_seq, fill.direction])).to.deep.equal([
        [1, 'sell'],
        [2, 'buy'],
      ]);
      // 2500.25 / 3 = 833.416666 (floored), less 5 units of residual, less the fee.
      expect(fills[0]).to.include({ token_in: 'WETH', amount_in: '0.333333333333333333', token_out: 'USDC' });
      expect(fills[0]?.amount_out).to.equal('833.408327');
      expect(fills[0]?.fee).to.deep.equal({ taker: TAKER, token: 'USDC', amount: '0.008334' });
      expect(fills[1]).to.include({
        token_in: 'USDC',
        amount_in: '2501.000007',
        token_out: 'WETH',
        amount_out: '0.999',
      });
      expect((await world.get('/v0/fills?pair=WETH-USDC&limit=1')).body).to.deep.equal(fills.slice(-1));
      expect((await world.get('/v0/fills?pair=WETH-USDC&limit=256')).body).to.deep.equal(fills);
      for (const limit of ['0', '1001', '-1', '1.5', 'x', '2&limit=3']) {
        expect((await world.get(`/v0/fills?pair=WETH-USDC&limit=${limit}`)).status, limit).to.equal(400);
      }
      expect(fills[1]?.fee).to.deep.equal({ taker: TAKER, token: 'WETH', amount: '0.001' });

      const explained = decompositionSchema.parse((await world.get('/v0/fills/1/decomposition?pair=WETH-USDC')).body);
      expect(explained).to.deep.equal({
        pair: 'WETH-USDC',
        fill_seq: 1,
        status: 'final',
        curve_seq: 1,
        direction: 'sell',
        consumed_before: '0',
        legs: [
          {
            maker: bob,
            price: '2500.25',
            size: '0.333333333333333333',
            base_amount: '0.333333333333333333',
            quote_amount: '833.416666',
            orders: [{ oid: 1, base_amount: '0.333333333333333333' }],
          },
        ],
        rounding: '0',
        compression_residual: '-0.000005',
        residual: '-0.000005',
        operator_gain: '0.000005',
        fee: { taker: TAKER, token: 'USDC', amount: '0.008334' },
      });
    });

    it('keeps the fills of markets apart, and waits for fills that are not there', async () => {
      const world = await start();
      const fill = fillOf(3, WETH_DAI, 1, 'ask', [{ oid: 1, maker: alice, priceTicks: 250_000n, baseUnits: WEI }]);
      await funded(world, withFills(MARKETS, [fill]));
      expect((await world.get('/v0/fills?pair=WETH-USDC')).body).to.deep.equal([]);
      expect(fillsSchema.parse((await world.get('/v0/fills?pair=WETH-DAI')).body)).to.have.length(1);
      const ofDai = decompositionSchema.parse((await world.get('/v0/fills/1/decomposition?pair=WETH-DAI')).body);
      expect(ofDai.status).to.equal('final');
      for (const seq of ['1', '0', '9007199254740991']) {
        const path = `/v0/fills/${seq}/decomposition?pair=WETH-USDC`;
        const pending = decompositionSchema.parse((await world.get(path)).body);
        expect([pending.status, pending.legs, pending.residual, pending.curve_seq]).to.deep.equal([
          'pending',
          [],
          '0',
          null,
        ]);
      }
    });

    it('lists the newest 256 fills, newest last', async () => {
      const world = await start();
      await world.commit(listing());
      const money = deposit(2, 0, alice, WETH.address, 1_000n * WEI);
      await world.commit(generationOf(2, money));
      const part = { oid: 1, maker: alice, priceTicks: 250_000n, baseUnits: WEI };
      const fills = Array.from({ length: 258 }, (_, i) => fillOf(3, WETH_USDC, i + 1, 'ask', [part]));
      await world.commit(generationOf(3, withFills(MARKETS, fills)));
      const rows = fillsSchema.parse((await world.get('/v0/fills?pair=WETH-USDC')).body);
      expect([rows.length, rows[0]?.fill_seq, rows.at(-1)?.fill_seq]).to.deep.equal([256, 3, 258]);
    });

    it('merges the book by price and leaves dust below a lot out', async () => {
      const world = await start();
      const order = (oid: number, side: 'ask' | 'bid', priceTicks: bigint, sizeLots: bigint) =>
        ({ type: 'open', oid, market: 0, side, priceTicks, sizeLots, tif: 'Gtc', cloid: null }) as const;
      const effects = [
        order(1, 'ask', 250_100n, 3n),
        order(2, 'ask', 250_000n, 1n),
        order(3, 'bid', 249_900n, 5n),
        order(4, 'bid', 249_950n, 7n),
        order(5, 'ask', 250_100n, 2n),
      ];
      const row = { timeMs: 1, signer: alice, nonce: 1, kind: 'order' };
      world.book.apply({ ...row, orderSeq: 1, maker: alice, effects });
      const book = bookSchema.parse((await world.get('/v0/book/WETH-USDC')).body);
      expect(book).to.deep.equal({
        pair: 'WETH-USDC',
        levels: {
          asks: [
            [250_000, 1],
            [250_100, 5],
          ],
          bids: [
            [249_950, 7],
            [249_900, 5],
          ],
        },
        feed_live: true,
        age_ms: 42,
      });
      const lotUnits = WETH_USDC.lotUnits;
      const fill = { oid: 1, maker: alice, market: 0, side: 'ask', priceTicks: 250_100n } as const;
      world.book.applyFills([{ ...fill, baseUnits: lotUnits / 2n }]);
      const after = bookSchema.parse((await world.get('/v0/book/WETH-USDC')).body);
      expect(after.levels.asks.at(-1), '2.5 + 2 lots, each order floored').to.deep.equal([250_100, 4]);
      expect(bookSchema.parse((await world.get('/v0/book/WETH-DAI')).body).levels).to.deep.equal({
        asks: [],
        bids: [],
      });
    });

    it('needs no pair while there is one market, and asks for it otherwise', async () => {
      const several = await start();
      for (const path of ['/v0/fills', '/v0/fills/1/decomposition', '/v0/fills?pair=']) {
        const { status, body } = await several.get(path);
        expect([status, errorSchema.parse(body).error.code], path).to.deep.equal([400, 'BAD_REQUEST']);
      }
      await listening?.close();
      const one = await start([WETH_USDC]);
      expect((await one.get('/v0/fills')).body).to.deep.equal([]);
      expect((await one.get('/v0/fills/1/decomposition')).status).to.equal(200);
    });

    it('refuses malformed input, and says what it does not know', async () => {
      const { get } = await start();
      const refused: [string, number][] = [
        ['/v0/book/weth-usdc', 404],
        ['/v0/book/%E0%A4%A', 404],
        ['/v0/fills?pair=DAI-WETH', 404],
        ['/v0/fills?pair=WETH-DAI&pair=WETH-DAI', 400],
        ['/v0/fills/1.0/decomposition?pair=WETH-DAI', 400],
        ['/v0/fills/01/decomposition?pair=WETH-DAI', 400],
        ['/v0/fills/9007199254740993/decomposition?pair=WETH-DAI', 400],
        ['/v0/fills/1e3/decomposition?pair=WETH-DAI', 400],
        [`/v0/makers/${alice.slice(2)}/limits`, 400],
        [`/v0/makers/${alice}00/limits`, 400],
        ['/v0/makers/maker/limits', 400],
        ['/v0', 404],
      ];
      for (const [path, status] of refused) {
        const answer = await get(path);
        const { code } = errorSchema.parse(answer.body).error;
        expect([answer.status, code], path).to.deep.equal([status, status === 400 ? 'BAD_REQUEST' : 'NOT_FOUND']);
      }
    });

    it('shows a stranger one row per served token, also when several markets trade it', async () => {
      const { get } = await start();
      const mixedCase = `0x${'aBc1'.repeat(10)}`;
      const { maker, ledger } = limitsSchema.parse((await get(`/v0/makers/${mixedCase}/limits`)).body);
      expect(maker).to.equal(mixedCase.toLowerCase());
      expect(ledger.balances.map(({ token }) => token)).to.deep.equal([WETH.symbol, USDC.symbol, DAI.symbol]);
    });
  });
});
