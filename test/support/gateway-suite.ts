import type { Db, Writer } from '../../ledger/types.js';
import type { GatewayConfig } from '../../server/orders/types.js';
import type { StreamLimits } from '../../server/stream/limits.js';
import { freshDatabase, post, seed, signRequest, startGateway } from './gateway.js';
import type { RunningGateway } from './gateway.js';

/** A funded gateway of its own for each test, and how to talk to it. */
export interface GatewaySuite {
  readonly kind: 'sqlite' | 'pg';
  readonly db: Db;
  readonly running: RunningGateway;
  /** `wrap` may interfere with the gateway's writer. */
  start(
    change?: Partial<GatewayConfig>,
    limits?: Partial<StreamLimits>,
    wrap?: (writer: Writer) => Writer,
    queriesPerMinute?: number,
  ): Promise<RunningGateway>;
  /** Stops the gateway, closes the database, and starts on it again. */
  restart(): Promise<RunningGateway>;
  /** Another connection to the same database, which the test closes. */
  open(): Promise<Db>;
  nextNonce(): number;
  /** Sends an action signed by the key and returns the JSON reply. */
  act(index: number, action: object, options?: ActOptions): Promise<Reply>;
}

type ActOptions = Parameters<typeof signRequest>[3] & { nonce?: number };
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests read replies of every shape
type Reply = any;

/** Declares the tests once per database: SQLite, and PostgreSQL when DATABASE_URL names a server. */
export function forEachGateway(name: string, declare: (suite: GatewaySuite) => void): void {
  declareOn(process.env.DATABASE_URL?.startsWith('postgres') ? ['sqlite', 'pg'] : ['sqlite'], name, declare);
}

/** A tenth of the runs on PostgreSQL: faults that depend on it show in few runs, and CI has the rest on SQLite. */
export const runsOn = ({ kind }: Pick<GatewaySuite, 'kind'>, runs: number): number =>
  kind === 'sqlite' ? runs : Math.ceil(runs / 10);

/** The same on SQLite only, for tests that do not depend on the database. */
export function withGateway(name: string, declare: (suite: GatewaySuite) => void): void {
  declareOn(['sqlite'], name, declare);
}

function declareOn(kinds: ('sqlite' | 'pg')[], name: string, declare: (suite: GatewaySuite) => void): void {
  for (const kind of kinds) {
    describe(`${name} on ${kind}`, () => {
      let database: Awaited<ReturnType<typeof freshDatabase>>;
      let db: Db;
      let running: RunningGateway | null = null;
      let config: Partial<GatewayConfig> = {};
      let nonce = Date.now();

      const suite: GatewaySuite = {
        kind,
        get db() {
          return db;
        },
        get running() {
          if (running === null) throw new Error('start the gateway first');
          return running;
        },
        async start(change = {}, limits = {}, wrap = undefined, queriesPerMinute = undefined) {
          config = change;
          running = await startGateway(db, wrap, config, limits, queriesPerMinute);
          return running;
        },
        async restart() {
          await running?.stop();
          await db.close();
          db = await database.open();
          running = await startGateway(db, undefined, config);
          return running;
        },
        open: () => database.open(),
        nextNonce: () => (nonce = Math.max(nonce + 1, Date.now())),
        async act(index, action, options = {}) {
          const request = signRequest(action, index, options.nonce ?? suite.nextNonce(), options);
          return (await post(`${suite.running.url}/exchange`, request)).json;
        },
      };

      beforeEach(async () => {
        database = await freshDatabase(kind);
        db = await database.open();
        await seed(db);
      });

      afterEach(async () => {
        await running?.stop();
        running = null;
        await db.close();
        await database.dispose();
      });

      declare(suite);
    });
  }
}

/** A bound, not an expectation: machines that run tests are busy. */
const WAIT_MS = 30_000;

/** Polls until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`the condition did not come true within ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const limit = (b: boolean, p: string, s: string, extra: object = {}) => ({
  a: 10000,
  b,
  p,
  s,
  r: false,
  t: { limit: { tif: 'Gtc' as const } },
  ...extra,
});

export const orderAction = (...orders: object[]) => ({ type: 'order', orders, grouping: 'na' });
