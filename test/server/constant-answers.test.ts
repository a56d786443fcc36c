/**
 * No answer of the read API, and no frame that has the same, is a constant where the ledger knows better: every field that is the same in all states
 * of this test is listed, with the reason. Every endpoint is asked, or listed with the test that has it: a new one without either fails.
 */
import { expect } from 'chai';
import { createBook } from '../../core/book/create-book.js';
import type { Address } from '../../core/types.js';
import { createCheckpointer } from '../../keepers/settler/checkpointer.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import { readTx } from '../../ledger/db/db.js';
import { readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import type { Db } from '../../ledger/types.js';
import { fillSeqs } from '../../ledger/views/reads.js';
import { ENDPOINTS } from '../../server/endpoints.js';
import { createCheckpointView, type CheckpointView } from '../../server/read/checkpoint-view.js';
import type { ReadDeps } from '../../server/read/deps.js';
import { fillJson } from '../../server/read/fills.js';
import { statusReader } from '../../server/read/status.js';
import { createPlatformFeed } from '../../server/stream/platform.js';
import { conformFrame } from '../support/api/asyncapi.js';
import { CONSTANT_ANSWERS, ELSEWHERE, PLATFORM_FRAMES } from '../support/api/constant-answers.js';
import { constantsOf, note, type Seen } from '../support/api/seen-fields.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
import { forEachDatabase } from '../support/db.js';
import { MARKETS } from '../support/ledger-log.js';
import { USDC, WETH } from '../support/markets.js';
import { drawer } from '../support/random.js';
import { createTradedLedger, type TradedLedger } from '../support/worlds/traded-ledger.js';

/** Trades the same each time. */
const SEED = 7;

/** Paths to ask an endpoint by, which depend on what others answered before. */
type Calls = Readonly<Record<string, (world: TradedLedger, fills: readonly Numbered[]) => string[]>>;

/** A fill of a market, as answered. */
interface Numbered {
  pair: string;
  fill_seq: number;
  curve_seq: number;
}

const perPair = (path: (pair: string) => string): string[] => MARKETS.map(({ pair }) => path(pair));

const CALLS: Calls = {
  '/health': () => ['/health'],
  '/v0/deployment': () => ['/v0/deployment'],
  '/v0/status': () => ['/v0/status'],
  '/v0/pairs': () => ['/v0/pairs'],
  '/v0/book/{pair}': () => perPair((pair) => `/v0/book/${pair}`),
  '/v0/curves/{pair}/{curve_seq}': (_world, fills) =>
    fills.map(({ pair, curve_seq }) => `/v0/curves/${pair}/${curve_seq}`),
  '/v0/makers/{maker}/account': ({ makers }) => makers.map((maker) => `/v0/makers/${maker}/account`),
  '/v0/makers/{maker}/limits': ({ makers }) => makers.map((maker) => `/v0/makers/${maker}/limits`),
  '/v0/candles/{pair}': () =>
    ['1m', '1d'].flatMap((interval) => perPair((pair) => `/v0/candles/${pair}?interval=${interval}`)),
  '/v0/fills': () => perPair((pair) => `/v0/fills?pair=${pair}`),
  '/v0/makers/{maker}/fills': ({ makers }) => makers.map((maker) => `/v0/makers/${maker}/fills?limit=7`),
  '/v0/takers/{address}/swaps': ({ takers }) => takers.map((taker) => `/v0/takers/${taker}/swaps?limit=7`),
  '/v0/makers/{maker}/performance': ({ makers }) =>
    makers.flatMap((maker) => perPair((pair) => `/v0/makers/${maker}/performance?pair=${pair}&interval=1h`)),
  '/v0/operator/summary': () => perPair((pair) => `/v0/operator/summary?pair=${pair}`),
  '/v0/operator/halts': () => ['/v0/operator/halts'],
  '/v0/takers/{address}/summary': ({ takers }) => takers.map((taker) => `/v0/takers/${taker}/summary`),
  '/v0/fills/{fill_seq}/decomposition': (_world, fills) =>
    fills.map(({ pair, fill_seq }) => `/v0/fills/${fill_seq}/decomposition?pair=${pair}`),
  '/v0/makers/{maker}/withdrawals': ({ makers }) => makers.map((maker) => `/v0/makers/${maker}/withdrawals`),
  '/v0/checkpoints/latest': () => ['/v0/checkpoints/latest'],
  '/v0/checkpoints/latest/proof': ({ makers }) => makers.map((maker) => `/v0/checkpoints/latest/proof?maker=${maker}`),
  '/v0/fees': () => ['/v0/fees'],
};

describe('answers that never change', () => {
  it('are looked for in every endpoint', () => {
    const known = [...Object.keys(CALLS).map((path) => `get ${path}`), ...Object.values(ELSEWHERE).flat()];
    expect(known.sort()).to.deep.equal(ENDPOINTS.map(({ method, path }) => `${method} ${path}`).sort());
  });

  forEachDatabase((_name, open) => {
    let server: ReadServer;
    let db: Db;
    let world: TradedLedger;
    let checkpoints: CheckpointView;
    const seen: Seen = new Map();

    beforeEach(async () => {
      db = await open();
      world = await createTradedLedger(db, MARKETS, drawer(SEED));
      checkpoints = createCheckpointView({
        db,
        deploymentId: 'd',
        pollIntervalMs: 10,
        logger: { error: () => undefined },
      });
      server = await startReadServer(db, MARKETS, { nowMs: () => world.nowMs(), checkpoints });
      seen.clear();
    });

    afterEach(() => server.close());

    async function publish(): Promise<void> {
      const checkpointer = createCheckpointer(db);
      const since = await checkpointer.generation();
      const view = await readTx(db, async (q) => ({
        head: (await lastGeneration(q))!,
        changed: await readBalancesSince(q, since),
        ackFillSeqs: Object.fromEntries(await fillSeqs(q)),
      }));
      const cut = await checkpointer.cut(view, world.nowMs());
      await checkpointer.commit(cut, (store) => db.knex.transaction(store));
      await checkpoints.refresh();
    }

    async function askAll(): Promise<void> {
      const fills: Numbered[] = [];
      // Fills first: others are asked by their numbers.
      const order = Object.keys(CALLS).sort((a, b) => (a === '/v0/fills' ? -1 : b === '/v0/fills' ? 1 : 0));
      for (const endpoint of order) {
        for (const path of CALLS[endpoint]!(world, fills)) {
          const { status, body } = await server.get(path);
          expect(status, path).to.be.oneOf(endpoint.startsWith('/v0/checkpoints') ? [200, 503] : [200]);
          if (status === 200) note(seen, endpoint, body);
          if (endpoint === '/v0/fills') fills.push(...(body as Numbered[]).slice(-20));
        }
      }
    }

    /** What a gateway and a watcher say, as something else each time. */
    function change(no: number): void {
      const { deps } = server;
      const maker: Address = world.makers[no % 4]!;
      const finding = {
        token: (no % 2 === 0 ? WETH : USDC).address,
        cause: 'transfers' as const,
        agreed: null,
        differenceUnits: null,
      };
      const said: Partial<ReadDeps> = {
        account: (account) => ({
          approval: account === maker ? 'approved' : no % 2 === 0 ? 'none' : 'suspended',
          actsFor: account === maker ? null : maker,
          agents: no === 0 ? [] : [{ address: world.takers[no % 3]!, name: `bot ${no}`, validUntilMs: no }],
          scheduledCancelMs: no === 0 ? null : no,
          scheduledCancelsToday: no,
          openOrders: no,
        }),
        delisted: () => new Set(no % 2 === 0 ? [] : [1]),
        feed: () => ({ isLive: no % 2 === 0, heardMs: world.nowMs() - no }),
        minOrderUnits: () => BigInt(no),
        readiness: () => ({ ready: no % 2 === 0, reason: no % 2 === 0 ? null : 'scan_stale' }),
        halt: () => (no < 2 ? null : { code: `halt ${no}`, message: `stopped ${no}`, byOperator: no === 2 }),
        nowMs: () => world.nowMs() + 1_000 * no,
        findings: () =>
          no === 0
            ? []
            : [
                {
                  ...finding,
                  state: no % 2 === 0 ? 'doubt' : 'quarantined',
                  code: `code ${no}`,
                  message: `${no}`,
                  blockNumber: no,
                  timeMs: no,
                },
              ],
        watcher: () => ({
          targetBlock: 200 + no,
          head: 300 + 2 * no,
          nextBlock: 150 + no,
          lastScanMs: world.nowMs() - no,
        }),
        replicaLagMs: no === 0 ? null : () => no,
        inventoryRevision: () => no,
        book: () => {
          const book = createBook(MARKETS);
          for (const [i, side] of (['ask', 'bid'] as const).entries())
            for (const { index } of MARKETS)
              book.apply({
                orderSeq: i * 2 + index + 1,
                timeMs: no,
                maker,
                signer: null,
                nonce: null,
                kind: 'order',
                effects: [
                  {
                    type: 'open',
                    market: index,
                    side,
                    priceTicks: side === 'ask' ? 300n : 200n + BigInt(no),
                    sizeLots: BigInt(no + 1),
                    oid: i * 2 + index + 1,
                    tif: 'Gtc',
                    cloid: null,
                  },
                ],
              });
          return book;
        },
      };
      Object.assign(deps, said);
    }

    it('are those that are listed, each with its reason', async function () {
      this.timeout(240_000);
      const frames = createPlatformFeed(
        {
          async fills(index, limit, before) {
            const fills = await server.deps.store.fillsPage({ market: index, limit, before });
            return fills.toReversed().map((fill) => fillJson(MARKETS[index]!, fill));
          },
          status: () => statusReader(server.deps)(),
        },
        { repeatMs: 5_000 },
        () => world.nowMs(),
        { info: () => undefined, warn: () => undefined, error: () => undefined },
      );
      const take = (bytes: Buffer): void => {
        const frame = JSON.parse(bytes.toString()) as { channel: string; data: unknown };
        conformFrame(frame);
        note(seen, `/ws ${frame.channel}`, frame.data);
      };
      const queue = {
        ...{ reply: take, event: ({ frame }: { frame: Buffer }) => take(frame) },
        latest: (_key: string, frame: Buffer) => take(frame),
        ...{ drop: () => undefined, check: () => undefined },
      };
      for (const { index: market, pair } of MARKETS)
        for (const type of ['fills', 'curves'] as const)
          frames.subscribe({ type, market, pair, key: `${type}:${pair}` }, queue);
      frames.subscribe({ type: 'status', key: 'status' }, queue);
      let states = 0;
      async function look(): Promise<void> {
        change((states += 1) - 1);
        frames.changed();
        await askAll();
      }
      const trade = async (count: number): Promise<void> => {
        for (let made = 0; made < count;) made += await world.step();
      };

      await look();
      await trade(40);
      await publish();
      await look();
      await world.reverse(2);
      await trade(20);
      await publish();
      await look();
      await world.reverse(3);
      await publish();
      await look();
      await new Promise((resolve) => setTimeout(resolve, 50));
      frames.stop();
      expect(
        [...new Set([...seen.keys()].map((path) => /^\/ws (\w+)/.exec(path)?.[1]))].filter(Boolean).sort(),
      ).to.deep.equal([...PLATFORM_FRAMES].sort());
      // PostgreSQL knows who holds a log, as here its writer does at times; a file does not.
      const constants = Object.fromEntries(
        Object.entries(constantsOf(seen)).filter(([path]) => !path.endsWith('.keepers[].running')),
      );
      // A frame has the same constants as the answer that it says again.
      const again = Object.values(CONSTANT_ANSWERS)
        .flat()
        .filter((path) => path.startsWith('/v0/status.'));
      const listed = [...Object.values(CONSTANT_ANSWERS).flat(), ...again.map((path) => path.replace('/v0/', '/ws '))];
      expect(Object.keys(constants).sort(), JSON.stringify(constants, null, 1)).to.deep.equal([...listed].sort());
    });
  });
});
