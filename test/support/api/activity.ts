/** Fills of a ledger, heard one by one, and the server that tells sums of them. */
import { Agent } from 'node:http';
import { verifyActivity } from '../../../keepers/verify/activity.js';
import type { Db } from '../../../ledger/types.js';
import { MARKETS } from '../ledger-log.js';
import { drawer } from '../random.js';
import { startReadServer, type ReadServer } from './read-server.js';
import { createTradedLedger, type TradedLedger } from '../worlds/traded-ledger.js';
import type { OpenTestDb } from '../db.js';

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;

/** Within a `describe`: a ledger that trades and a server over it for each test. */
export function activityOf(open: OpenTestDb) {
  let server: ReadServer;
  let db: Db;
  let world: TradedLedger;
  const seed = Number.parseInt(process.env.SEED ?? `${Date.now() % 1_000_000}`, 10);

  beforeEach(async () => {
    db = await open();
    world = await createTradedLedger(db, MARKETS, drawer(seed));
    server = await startReadServer(db, MARKETS, { nowMs: () => world.nowMs() });
  });

  afterEach(() => server.close());

  const verify = () => verifyActivity({ q: db.knex, markets: MARKETS, onProgress: () => undefined });

  const agent = new Agent({ keepAlive: true });
  after(() => agent.destroy());

  /** Trades at random, with reversals in between, until so many fills were made. */
  async function trade(fills: number): Promise<void> {
    const pick = drawer(seed + 1);
    let reversals = 0;
    for (let made = 0; made < fills || reversals < 3;) {
      if (pick(25) === 0 && world.height() > 3) {
        await world.reverse(1 + pick(Math.min(12, world.height() - 2)));
        reversals += 1;
      } else made += await world.step();
    }
  }

  return {
    get server() {
      return server;
    },
    set server(value) {
      server = value;
    },
    get db() {
      return db;
    },
    get world() {
      return world;
    },
    seed,
    verify,
    agent,
    trade,
  };
}
