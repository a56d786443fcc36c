/** Every GET route there is, with values that its schema allows and with values that nobody should send. */
import { Agent, request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type Router from '@koa/router';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Address } from '../../core/types.js';
import { createCheckpointer } from '../../keepers/settler/checkpointer.js';
import { insertCheckpoint, readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import type { Db } from '../../ledger/types.js';
import { createApp } from '../../server/app.js';
import { ENDPOINTS } from '../../server/endpoints.js';
import { listen, type Listening } from '../../server/listen.js';
import { openApiRoutes } from '../../server/openapi/routes.js';
import { createMetrics } from '../../server/ops/metrics.js';
import { probeRoutes, metricsRoutes } from '../../server/ops/probes.js';
import { createCheckpointView } from '../../server/read/checkpoint-view.js';
import { readLimits } from '../../server/rate-limit.js';
import { errorSchema } from '../../server/read/schemas.js';
import type { SwapDeps } from '../../server/swap/deps.js';
import { swapRoutes } from '../../server/swap/endpoints.js';
import { forOneDatabase } from '../support/db.js';
import { fcOptions } from '../support/fc.js';
import { deposit, fillOf, generationOf, withFills } from '../support/generations.js';
import { MAKERS, WETH, WETH_DAI, WETH_USDC } from '../support/markets.js';
import { conformTo, DOCUMENT } from '../support/api/openapi.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
import { SILENT_METRICS } from '../support/api/silent-metrics.js';

/** Requests per database in CI; test:deep multiplies them. */
const REQUESTS = 1_500;
/** What is left when garbage is collected: caches and what the test itself notes down; a leak of some kilobytes per request is more. */
const GROWTH_BYTES = 30 * 1024 * 1024;
const MARKETS = [WETH_USDC, WETH_DAI];
const [alice] = MAKERS as [Address];
const WEI = 10n ** 18n;

/** Else what is measured would be how lazy the collector is. */
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

interface Parameter {
  name: string;
  in: 'path' | 'query';
  required?: boolean;
  schema: { pattern?: string };
}

interface Route {
  path: string;
  parameters: Parameter[];
}

const routes: Route[] = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  methods.get === undefined ? [] : [{ path, parameters: (methods.get.parameters ?? []) as Parameter[] }],
);
/** Served and not described: the document and its page, and what machines ask on a port of their own. */
const PLAIN = ['/openapi.json', '/asyncapi.json', '/docs/reference'];
const OPS = ['/metrics', '/live', '/ready'];

/** Values that exist in the world below. */
const KNOWN: Record<string, readonly string[]> = {
  pair: ['WETH-USDC', 'WETH-DAI'],
  maker: [alice, alice.toUpperCase().replace('0X', '0x')],
  fill_seq: ['1'],
  curve_seq: ['1'],
  address: [alice],
  taker: [alice],
  owner: [alice],
  interval: ['1h', '1M'],
  format: ['json'],
  before: ['9', '9-9', '9-9-9-9'],
  chainId: ['8453'],
  orderId: ['order'],
};

const hostile = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '-0',
    '-1',
    '+1',
    ' 1',
    '1.0',
    '1e400',
    '0x10',
    '\u0661',
    '9'.repeat(400),
    '9007199254740993',
  ),
  fc.constantFrom(
    'null',
    'undefined',
    'NaN',
    'true',
    '[]',
    '{}',
    '__proto__',
    'constructor',
    'toString',
    '*',
    "' or 1=1 --",
  ),
  fc.constantFrom(
    '\0',
    'a\0b',
    '.',
    '..',
    '../..',
    '/',
    'a/b',
    '//',
    '\\',
    '?',
    '#',
    '&',
    '=',
    ';',
    '\r\nx: y',
    '\u202e',
    '\ufeff',
  ),
  fc.constantFrom(
    'x'.repeat(4_000),
    '\u{1F600}'.repeat(500),
    'WETH-USDC ',
    'weth-usdc',
    '-',
    'WETH--USDC',
    `0x${'g'.repeat(40)}`,
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.bigInt(-(2n ** 300n), 2n ** 300n).map(String),
);
/** Sequences that are no encoding of anything. */
const malformed = fc.constantFrom('%', '%zz', '%E0%A4%A', '%C0%80', '%FF', '%00%', '%u0041');

const encoded = (value: string): string => encodeURIComponent(value.toWellFormed());

/** A value of the parameter, encoded. */
function valueOf({ name, schema }: Parameter): fc.Arbitrary<string> {
  const allowed = schema.pattern === undefined ? fc.string() : fc.stringMatching(new RegExp(schema.pattern, 'u'));
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...(KNOWN[name] ?? ['1'])).map(encoded) },
    { weight: 2, arbitrary: allowed.map(encoded) },
    { weight: 4, arbitrary: hostile.map(encoded) },
    { weight: 1, arbitrary: malformed },
  );
}

interface Asked {
  /** As the document calls it. */
  route: string;
  target: string;
  /** A part of the path is empty, so that it may be no route at all. */
  hasGap: boolean;
}

function requestOf({ path, parameters }: Route): fc.Arbitrary<Asked> {
  const inPath = parameters.filter((one) => one.in === 'path');
  const inQuery = parameters.filter((one) => one.in === 'query');
  const values = fc.tuple(...inPath.map(valueOf));
  // Mostly one of each, so that each route has its chance of being answered; else none or several. And some that nobody asked for.
  const some = (one: Parameter): fc.Arbitrary<string[]> =>
    fc.oneof(
      { weight: 3, arbitrary: fc.tuple(valueOf(one)) },
      { weight: one.required === true ? 0 : 6, arbitrary: fc.constant<string[]>([]) },
      { weight: 1, arbitrary: fc.array(valueOf(one), { maxLength: 3, size: 'small' }) },
    );
  const queries = fc.tuple(
    ...inQuery.map((one) => some(one).map((list) => list.map((value) => `${one.name}=${value}`))),
  );
  const strange = fc.array(
    fc.tuple(hostile, hostile).map(([name, value]) => `${encoded(name)}=${encoded(value)}`),
    {
      maxLength: 2,
    },
  );
  return (
    fc
      .tuple(values, queries, fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, strange))
      .map(([list, named, extra]) => {
        const filled = inPath.reduce((text, { name }, i) => text.replace(`{${name}}`, () => list[i] ?? ''), path);
        const query = [...named.flat(), ...extra].join('&');
        return { route: path, target: query === '' ? filled : `${filled}?${query}`, hasGap: list.includes('') };
      })
      // Node itself refuses heads above 16 KiB, before anything of ours is asked.
      .filter(({ target }) => target.length < 12_000)
  );
}

/** Every parameter of these has to be right at once, which few seeds bring about. */
const CANDLES = { route: '/v0/candles/{pair}', target: '/v0/candles/WETH-USDC?interval=1h', hasGap: false };
const FILLS = { route: '/v0/fills', target: '/v0/fills?pair=WETH-USDC', hasGap: false };
const LEGS = {
  route: '/v0/fills/{fill_seq}/decomposition',
  target: '/v0/fills/1/decomposition?pair=WETH-USDC',
  hasGap: false,
};
const described = fc.oneof(...routes.map(requestOf));
/** Paths that may be nothing, or one of the plain ones with something behind it. */
const others = fc.oneof(
  fc
    .tuple(fc.constantFrom(...PLAIN), fc.option(hostile))
    .map(([path, query]) => (query === null ? path : `${path}?${encoded(query)}`)),
  fc
    .array(fc.oneof(hostile.map(encoded), malformed, fc.constantFrom('v0', 'api', 'v1', 'makers', 'fills')), {
      maxLength: 5,
    })
    .map((parts) => `/${parts.join('/')}`),
);
const forMachines = fc
  .tuple(fc.constantFrom(...OPS, '/', '/metrics/'), fc.option(hostile))
  .map(([path, query]) => (query === null ? path : `${path}?${encoded(query)}`));

forOneDatabase((name, open) =>
  describe(`all GET routes, asked for anything, ${name}`, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    let server: ReadServer;
    let ops: Listening;
    const failures: unknown[] = [];
    const silent = { info: () => undefined, error: (fields: unknown) => void failures.push(fields) };

    beforeEach(async () => {
      failures.length = 0;
      const db = await open();
      const view = createCheckpointView({ db, deploymentId: 'd', pollIntervalMs: 10, logger: silent });
      const limits = readLimits(1_000_000_000);
      const document = { title: 't', version: '1', description: '', url: null };
      const routers = [swaps(db), openApiRoutes(ENDPOINTS, document, limits.read)];
      const probing = probeRoutes(
        {
          failure: () => null,
          ready: () => ({ ready: true, reason: null }),
          active: () => ({ active: true, reason: null }),
        },
        limits.health,
      );
      server = await startReadServer(db, MARKETS, { checkpoints: view, limits }, [...routers, probing]);
      await fill(db);
      await view.refresh();
      const { registry } = createMetrics(SILENT_METRICS);
      const probes = probeRoutes({
        failure: () => null,
        ready: () => ({ ready: false, reason: 'standby' }),
        active: () => ({ active: true, reason: null }),
      });
      ops = await listen(createApp({ routers: [metricsRoutes(registry), probes], logger: silent }), 0, '127.0.0.1');
    });

    afterEach(async () => {
      await server.close();
      await ops.close();
    });

    after(() => agent.destroy());

    /** The swap API's GET routes; nothing of them asks the chain. */
    function swaps(db: Db): Router {
      const limit = { name: 'x', requests: 1_000_000_000, windowSec: 60 };
      const limits = { tokens: limit, quotes: limit, submissions: limit, orders: limit };
      const token = { ...WETH, chainId: 8453, name: 'Wrapped Ether', logoURI: '' };
      return swapRoutes(
        { db, chainId: 8453, tokens: [token], limits, nowMs: () => Date.now() } as unknown as SwapDeps,
        'd',
      );
    }

    /** A deposit, a posted curve, a fill and a checkpoint. */
    async function fill(db: Db): Promise<void> {
      const post = {
        market: 0,
        seq: 1,
        era: 0,
        baseSeq: 1,
        postedSeq: 1,
        deadlineSec: 1,
        snapAskUnits: 0n,
        snapBidUnits: 0n,
      };
      const seen = {
        blockNumber: 101,
        blockTimestampSec: 1,
        wordsHash: `0x${'5'.repeat(64)}`,
        txHash: `0x${'6'.repeat(64)}`,
      } as const;
      await server.commit(generationOf(1, { listed: MARKETS, posts: [{ ...post, ...seen }] }));
      await server.commit(generationOf(2, deposit(2, 0, alice, WETH.address, 100n * WEI)));
      const part = { oid: 1, maker: alice, priceTicks: 250_000n, baseUnits: WEI };
      const fills = MARKETS.map((market) => fillOf(3, market, 1, 'ask', [part]));
      await server.commit(generationOf(3, withFills(MARKETS, fills)));
      const head = (await lastGeneration(db.knex))!;
      const cut = await createCheckpointer(db).cut(
        { head, changed: await readBalancesSince(db.knex, 0), ackFillSeqs: {} },
        1,
      );
      await db.knex.transaction((tx) => insertCheckpoint(tx, cut.head, cut.changed));
    }

    /** Sends the target exactly as it is; fetch would tidy it up. */
    function get(base: string, target: string): Promise<{ status: number; type: string; text: string }> {
      const { hostname, port } = new URL(base);
      return new Promise((resolve, reject) => {
        const sent = request({ host: hostname, port, path: target, agent }, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', text }),
          );
        });
        sent.on('error', reject);
        sent.end();
      });
    }

    const memory = (): number => {
      collectGarbage();
      return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    };

    const isError = (text: string): boolean => errorSchema.safeParse(JSON.parse(text)).success;

    /** The route that a path without its last part is of: a list, where that part names one of it. */
    const listOf = (target: string): string | undefined => {
      const path = target.split('?')[0]?.replace(/\/$/, '');
      return routes.find((route) => route.path === path)?.path;
    };

    it('never fail, and answer as the document says', async function () {
      this.timeout(1_800_000);
      const answered = new Map<string, Set<number>>();
      const before = memory();
      await fc.assert(
        fc.asyncProperty(described, async ({ route, target, hasGap }) => {
          const { status, type, text } = await get(server.url, target);
          expect(status, `${target}: ${text.slice(0, 200)}`).to.be.lessThan(500);
          expect(type).to.match(/^application\/json/);
          if (hasGap && (status === 404 || status === 405)) expect(isError(text), target).to.equal(true);
          else conformTo(hasGap ? (listOf(target) ?? route) : route, 'GET', status, JSON.parse(text));
          answered.set(route, (answered.get(route) ?? new Set()).add(status));
        }),
        { ...fcOptions(REQUESTS), examples: [[CANDLES], [FILLS], [LEGS]] },
      );
      expect(failures).to.deep.equal([]);
      expect(memory() - before).to.be.lessThan(GROWTH_BYTES);
      // Values that exist were among them, else this would show little.
      const silentRoutes = routes.filter(({ path }) => !answered.get(path)?.has(200)).map(({ path }) => path);
      // No order was ever placed here, and no curve posted that could give a price.
      expect(silentRoutes).to.deep.equal(['/api/v1/price', '/api/v1/orders/{orderId}']);
    });

    it('take no parameter twice, since one of the two would be ignored', async () => {
      const valueFor = ({ name }: Parameter): string => KNOWN[name]?.[0] ?? '1';
      const named = routes.flatMap(({ path, parameters }) => {
        const filled = parameters
          .filter((one) => one.in === 'path')
          .reduce((text, one) => text.replace(`{${one.name}}`, encoded(valueFor(one))), path);
        const inQuery = parameters.filter((one) => one.in === 'query');
        return inQuery.map((twice) => {
          const others = inQuery.filter((one) => one.required === true && one !== twice);
          return `${filled}?${[...others, twice, twice].map((one) => `${one.name}=${valueFor(one)}`).join('&')}`;
        });
      });
      expect(named).to.include(`/v0/makers/${alice}/fills?pair=WETH-USDC&pair=WETH-USDC`);
      for (const target of named) expect((await get(server.url, target)).status, target).to.equal(400);
    });

    it('never fail for paths that nobody describes', async function () {
      this.timeout(1_800_000);
      await fc.assert(
        fc.asyncProperty(others, async (target) => {
          const { status, type, text } = await get(server.url, target);
          expect(status, `${target}: ${text.slice(0, 200)}`).to.be.oneOf([200, 400, 404, 405]);
          if (type.startsWith('application/json')) expect(() => JSON.parse(text) as unknown).to.not.throw();
          const isApi = /^\/(v0|api\/v1)(\/|$)/i.test(target.split('?')[0]!);
          if (status >= 400 && isApi) expect(isError(text), target).to.equal(true);
          else if (status >= 400) expect(type, target).to.match(/^(text\/plain|application\/json)/);
        }),
        fcOptions(REQUESTS / 5),
      );
      expect((await get(server.url, `/v0/pairs?${'x'.repeat(20_000)}`)).status, 'too long for a head').to.equal(431);
      expect(failures).to.deep.equal([]);
    });

    it('never fail on the port for machines', async function () {
      this.timeout(1_800_000);
      await fc.assert(
        fc.asyncProperty(forMachines, async (target) => {
          const { status } = await get(ops.url, target);
          // Readiness is the one that says 503, because the process is on standby.
          expect(status, target).to.be.oneOf(target.startsWith('/ready') ? [503] : [200, 404]);
        }),
        fcOptions(REQUESTS / 15),
      );
      expect(failures).to.deep.equal([]);
    });
  }),
);
