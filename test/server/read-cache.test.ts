/** Answers that a client may keep, and headers that every answer has. */
import { expect } from 'chai';
import type { Address } from '../../core/types.js';
import { createCheckpointer } from '../../keepers/settler/checkpointer.js';
import { insertCheckpoint, readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import type { Db } from '../../ledger/types.js';
import { createCheckpointView, type CheckpointView } from '../../server/read/checkpoint-view.js';
import { readLimits } from '../../server/rate-limit.js';
import { createSessions, type Sessions } from '../../server/stream/sessions.js';
import { createFeed } from '../../server/read/feed.js';
import { forOneDatabase } from '../support/db.js';
import { deposit, fillOf, generationOf, withFills } from '../support/generations.js';
import { MAKERS, WETH, WETH_DAI, WETH_USDC } from '../support/markets.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';

const MARKETS = [WETH_USDC, WETH_DAI];
const WEI = 10n ** 18n;
const [alice, bob] = MAKERS as [Address, Address];
const BOOK = '/v0/book/WETH-USDC';
const FILLS = '/v0/fills?pair=WETH-USDC';
const CHECKPOINT = '/v0/checkpoints/latest';

forOneDatabase((name, open) =>
  describe(`answers that may be kept, ${name}`, () => {
    let db: Db;
    let server: ReadServer;
    let view: CheckpointView;
    let sessions: Sessions;
    let actions: Map<Address, number>;
    let markets: typeof MARKETS;
    let nowMs: number;
    let orderSeq: number;

    beforeEach(async () => {
      db = await open();
      view = createCheckpointView({ db, deploymentId: 'd', pollIntervalMs: 10, logger: { error: () => undefined } });
      sessions = createSessions();
      actions = new Map();
      markets = [WETH_USDC];
      nowMs = 10_000;
      orderSeq = 0;
      server = await startReadServer(db, markets, { checkpoints: view, nowMs: () => nowMs });
      server.deps.feed = createFeed({
        book: () => server.book,
        lastActionMs: (maker) => actions.get(maker) ?? null,
        sessions,
        startedMs: 1_000,
      });
      await server.commit(generationOf(1, { listed: MARKETS }));
      await server.commit(generationOf(2, deposit(2, 0, alice, WETH.address, 100n * WEI)));
    });

    afterEach(() => server.close());

    function quote(maker: Address, priceTicks: bigint, oid = orderSeq + 1): void {
      orderSeq += 1;
      actions.set(maker, nowMs);
      const open = { type: 'open', oid, market: 0, side: 'ask', priceTicks, sizeLots: 5n } as const;
      const effects = [{ ...open, tif: 'Gtc', cloid: null } as const];
      server.book.apply({ orderSeq, timeMs: nowMs, maker, signer: maker, nonce: nowMs, kind: 'order', effects });
    }

    function act(maker: Address): void {
      orderSeq += 1;
      actions.set(maker, nowMs);
      server.book.apply({ orderSeq, timeMs: nowMs, maker, signer: maker, nonce: nowMs, kind: 'noop', effects: [] });
    }

    const fill = (n: number, fillSeq: number) =>
      server.commit(
        generationOf(
          n,
          withFills(MARKETS, [
            fillOf(n, WETH_USDC, fillSeq, 'ask', [{ oid: 1, maker: alice, priceTicks: 250_000n, baseUnits: WEI }]),
          ]),
        ),
      );

    async function checkpoint(): Promise<void> {
      const checkpointer = createCheckpointer(db);
      const head = (await lastGeneration(db.knex))!;
      const changed = await readBalancesSince(db.knex, await checkpointer.generation());
      const cut = await checkpointer.cut({ head, changed, ackFillSeqs: {} }, 1);
      await db.knex.transaction((tx) => insertCheckpoint(tx, cut.head, cut.changed));
      await view.refresh();
    }

    const ask = (path: string, tag?: string): Promise<Response> =>
      fetch(server.url + path, { headers: tag === undefined ? {} : { 'if-none-match': tag } });

    async function tagOf(path: string): Promise<string> {
      const response = await ask(path);
      expect(response.status).to.equal(200);
      expect(response.headers.get('cache-control')).to.equal('no-cache');
      const tag = response.headers.get('etag') ?? '';
      const again = await ask(path, `"other", ${tag}`);
      expect([again.status, again.headers.get('etag'), await again.text()]).to.deep.equal([304, tag, '']);
      expect(again.headers.get('x-ratelimit-remaining'), 'a 304 counts, and says so').to.match(/^\d+$/);
      return tag;
    }

    /** The kept copy is out of date: the answer is the new one, under another tag. */
    async function expectNew(path: string, tag: string): Promise<void> {
      const response = await ask(path, tag);
      expect(response.status).to.equal(200);
      expect(response.headers.get('etag')).to.not.equal(tag);
      expect((await response.text()).length).to.be.greaterThan(0);
    }

    it('pairs, until one more is listed', async () => {
      const tag = await tagOf('/v0/pairs');
      expect(tag).to.match(/^"/);
      markets.push(WETH_DAI);
      await expectNew('/v0/pairs', tag);
      expect((await server.get('/v0/pairs')).body).to.have.length(2);
    });

    it('pairs, until one is delisted', async () => {
      const tag = await tagOf('/v0/pairs');
      server.deps.delisted = () => new Set([0]);
      await expectNew('/v0/pairs', tag);
      expect((await server.get('/v0/pairs')).body).to.have.deep.nested.property('[0].delisted', true);
    });

    it('the deployment, until a pair is listed or delisted', async () => {
      const tag = await tagOf('/v0/deployment');
      markets.push(WETH_DAI);
      await expectNew('/v0/deployment', tag);
      const second = await tagOf('/v0/deployment');
      server.deps.delisted = () => new Set([0]);
      await expectNew('/v0/deployment', second);
    });

    it('a book, until its levels, its sessions or the last word of its makers change', async () => {
      quote(alice, 250_000n);
      let tag = await tagOf(BOOK);
      expect(tag, 'the age grows by itself').to.match(/^W\//);
      nowMs += 700;
      expect((await ask(BOOK, tag)).status, 'only time went by').to.equal(304);
      expect((await server.get(BOOK)).body).to.deep.include({ age_ms: 700, feed_live: false });

      const changes: [string, () => void][] = [
        ['a level', () => quote(bob, 250_001n)],
        ['the size of a level', () => quote(bob, 250_001n)],
        [
          'a fill',
          () =>
            server.book.applyFills([
              { oid: 1, maker: alice, market: 0, side: 'ask', priceTicks: 250_000n, baseUnits: WETH_USDC.lotUnits },
            ]),
        ],
        ['a session', () => sessions.accepted('socket', alice)],
        ['its end', () => sessions.closed('socket')],
      ];
      for (const [what, change] of changes) {
        change();
        await expectNew(BOOK, tag).catch((error: unknown) => expect.fail(`${what}: ${String(error)}`));
        tag = await tagOf(BOOK);
      }
      nowMs += 5;
      act(alice);
      await expectNew(BOOK, tag);
      expect((await server.get(BOOK)).body).to.deep.include({ age_ms: 0 });
      tag = await tagOf(BOOK);
      sessions.accepted('other socket', `0x${'f'.repeat(40)}`);
      expect((await ask(BOOK, tag)).status, 'nobody who quotes here').to.equal(304);
    });

    it('fills, until there is one more, or another one in its place', async () => {
      const none = await tagOf(FILLS);
      await fill(3, 1);
      await expectNew(FILLS, none);
      const one = await tagOf(FILLS);
      expect(one).to.match(/^"/);
      await server.commit(generationOf(4));
      expect((await ask(FILLS, one)).status, 'a generation without a fill').to.equal(304);
      await fill(5, 2);
      await expectNew(FILLS, one);
      const two = await tagOf(FILLS);
      // What a reversal and a replay leave: the number of before, and another transaction.
      await db
        .knex('fills')
        .where({ fill_seq: 2 })
        .update({ generation: 6, tx_hash: `0x${'e'.repeat(64)}` });
      await expectNew(FILLS, two);
    });

    it('fills, and none that a reversal took back while they were read for another key', async () => {
      await fill(3, 1);
      const { store } = server.deps;
      let meanwhile = () => fill(4, 2);
      server.deps.store = {
        ...store,
        async newestFill(market) {
          const key = await store.newestFill(market);
          await meanwhile();
          meanwhile = () => Promise.resolve();
          return key;
        },
      };
      const numbers = async (): Promise<number[]> =>
        ((await server.get(FILLS)).body as { fill_seq: number }[]).map(({ fill_seq: fillSeq }) => fillSeq);
      expect(await numbers()).to.deep.equal([1, 2]);
      // What a reversal leaves: the key of before is the newest one's again.
      for (const table of ['order_fills', 'fills'] as const) await db.knex(table).where({ fill_seq: 2 }).delete();
      expect(await numbers()).to.deep.equal([1]);
    });

    it('fills, and none that a reversal took back before they were asked for', async () => {
      await fill(3, 1);
      const { store } = server.deps;
      const reading = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const late =
        <A extends unknown[], T>(read: (...of: A) => Promise<T>) =>
        async (...of: A): Promise<T> => {
          const found = await read(...of);
          reading.resolve();
          await goOn.promise;
          return found;
        };
      let meanwhile = () => fill(4, 2);
      server.deps.store = {
        ...store,
        ...{ fillsPage: late(store.fillsPage), newestFills: late(store.newestFills) },
        async newestFill(market) {
          const key = await store.newestFill(market);
          await meanwhile();
          meanwhile = () => Promise.resolve();
          return key;
        },
      };
      const first = server.get(FILLS);
      await reading.promise;
      for (const table of ['order_fills', 'fills'] as const) await db.knex(table).where({ fill_seq: 2 }).delete();
      const second = server.get(FILLS);
      await new Promise((resolve) => setTimeout(resolve, 50));
      goOn.resolve();
      await first;
      expect((await second).body).to.have.length(1);
    });

    it('fees, which are read once per generation however many ask, and again when reading failed', async () => {
      const { store } = server.deps;
      let reads = 0;
      let failing = false;
      server.deps.store = {
        ...store,
        takerFees: () => {
          reads += 1;
          return failing ? Promise.reject(new Error('no database')) : store.takerFees();
        },
      };
      const fees = async (): Promise<unknown> => (await server.get('/v0/fees')).body;
      const taker: Address = `0x${'7'.repeat(40)}`;
      const fee = { taker, token: WETH.address, accrued_units: '5', generation: 2 };
      await db.knex('taker_fees').insert(fee);
      failing = true;
      expect((await ask('/v0/fees')).status).to.equal(500);
      failing = false;
      const row = (balance: string) => [{ taker, fees: [{ token: 'WETH', accrued: '0.000000000000000005', balance }] }];
      for (const answer of await Promise.all([fees(), fees(), fees()])) expect(answer).to.deep.equal(row('0'));
      expect(reads).to.equal(2);
      await server.commit(generationOf(3, deposit(3, 0, taker, WETH.address, WEI)));
      for (const answer of await Promise.all([fees(), fees()])) expect(answer).to.deep.equal(row('1'));
      expect(reads).to.equal(3);
      // The tokens that a market brings are named with its listing.
      markets.push(WETH_DAI);
      await fees();
      expect(reads).to.equal(4);
    });

    it('the newest checkpoint, until there is a newer one', async () => {
      const early = await ask(CHECKPOINT);
      expect([early.status, early.headers.get('cache-control')]).to.deep.equal([503, 'no-store']);
      await checkpoint();
      const tag = await tagOf(CHECKPOINT);
      expect(tag).to.match(/^"/);
      await server.commit(generationOf(3, deposit(3, 0, bob, WETH.address, WEI)));
      await checkpoint();
      await expectNew(CHECKPOINT, tag);
      const head = await fetch(server.url + CHECKPOINT, { method: 'HEAD' });
      const whole = await ask(CHECKPOINT);
      expect(head.headers.get('content-length')).to.equal(`${Buffer.byteLength(await whole.text())}`);
    });

    it('never balances, nor anything else that is about one moment', async () => {
      await checkpoint();
      const paths = ['limits', 'withdrawals'].map((what) => `/v0/makers/${alice}/${what}`);
      for (const path of [...paths, `${CHECKPOINT}/proof?maker=${alice}`, '/v0/fees', '/v0/status', '/health']) {
        const response = await ask(path, '*');
        expect(
          [response.status, response.headers.get('cache-control'), response.headers.get('etag')],
          path,
        ).to.deep.equal([200, 'no-store', null]);
      }
    });

    it('say where the client stands, whatever the answer is, also to pages of other origins', async () => {
      const answers: [string, string, number][] = [
        ['GET', '/health', 200],
        ['GET', '/v0/pairs', 200],
        ['GET', '/v0/book/A-B', 404],
        ['GET', '/v0/nothing', 404],
        ['GET', '/nothing', 404],
        ['POST', '/v0/pairs', 405],
        ['GET', CHECKPOINT, 503],
        ['GET', '/v0/makers/x/limits', 400],
      ];
      for (const [method, path, status] of answers) {
        const response = await fetch(server.url + path, { method, headers: { origin: 'https://maker.example' } });
        expect(response.status, path).to.equal(status);
        const exposed = (response.headers.get('access-control-expose-headers') ?? '').split(',');
        for (const header of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
          expect(response.headers.get(header), `${header} of ${path}`).to.match(/^\d+$/);
          expect(exposed).to.include(header);
        }
        expect(exposed).to.include.members(['etag', 'retry-after']);
        expect(response.headers.get('access-control-allow-origin')).to.equal('*');
      }
    });

    it('refuse beyond the limit, but not to say that the process answers', async () => {
      await server.close();
      server = await startReadServer(db, markets, { limits: readLimits(2) });
      const statuses: number[] = [];
      for (const path of ['/v0/pairs', '/v0/nothing', '/v0/pairs', '/health']) statuses.push((await ask(path)).status);
      expect(statuses).to.deep.equal([200, 404, 429, 200]);
      expect((await ask('/v0/pairs')).headers.get('retry-after')).to.match(/^[1-9]\d?$/);
    });
  }),
);
