/** No answer of the read API is a constant where the ledger knows better: every field that is the same in all states of this test is listed, with the reason. */
import { expect } from 'chai';
import { migrate } from '../../ledger/db/db.js';
import { CONSTANT_ANSWERS } from '../support/api/constant-answers.js';
import { forEachDatabase } from '../support/db.js';
import { MARKETS } from '../support/ledger-log.js';
import { constantsOf, note, type Seen } from '../support/api/seen-fields.js';
import { drawer } from '../support/random.js';
import { startReadServer, type ReadServer } from '../support/api/read-server.js';
import { createTradedLedger } from '../support/worlds/traded-ledger.js';

/** Trades the same each time. */
const SEED = 7;

describe('answers that never change', () => {
  forEachDatabase((_name, open) => {
    let server: ReadServer;

    afterEach(() => server.close());

    it('are those that are listed, each with its reason', async function () {
      this.timeout(120_000);
      const db = await open();
      await migrate(db);
      const world = await createTradedLedger(db, MARKETS, drawer(SEED));
      server = await startReadServer(db, MARKETS, { nowMs: () => world.nowMs() });
      const seen: Seen = new Map();
      const ask = async (name: string, path: string): Promise<unknown> => {
        const { status, body } = await server.get(path);
        if (status === 200) note(seen, name, body);
        return body;
      };

      async function askAll(): Promise<void> {
        await ask('/v0/status', '/v0/status');
        await ask('/v0/fees', '/v0/fees');
        for (const { pair } of MARKETS) {
          const fills = (await ask('/v0/fills', `/v0/fills?pair=${pair}`)) as { fill_seq: number; curve_seq: number }[];
          for (const { fill_seq, curve_seq } of fills.slice(-20)) {
            await ask('decomposition', `/v0/fills/${fill_seq}/decomposition?pair=${pair}`);
            await ask('/v0/curves', `/v0/curves/${pair}/${curve_seq}`);
          }
          await ask('/v0/candles', `/v0/candles/${pair}?interval=1m`);
          await ask('/v0/candles', `/v0/candles/${pair}?interval=1d`);
          await ask('/v0/operator/summary', `/v0/operator/summary?pair=${pair}`);
          for (const maker of world.makers)
            await ask('performance', `/v0/makers/${maker}/performance?pair=${pair}&interval=1h`);
        }
        for (const maker of world.makers) {
          await ask('/v0/makers/fills', `/v0/makers/${maker}/fills?limit=7`);
          await ask('limits', `/v0/makers/${maker}/limits`);
          await ask('withdrawals', `/v0/makers/${maker}/withdrawals`);
        }
        for (const taker of world.takers) {
          await ask('swaps', `/v0/takers/${taker}/swaps?limit=7`);
          await ask('/v0/takers/summary', `/v0/takers/${taker}/summary`);
        }
      }

      await askAll();
      for (let made = 0; made < 40;) made += await world.step();
      await askAll();
      await world.reverse(2);
      for (let made = 0; made < 20;) made += await world.step();
      await askAll();
      await world.reverse(3);
      await askAll();
      // PostgreSQL knows who holds a log, as here its writer does at times; a file does not.
      const { ['/v0/status.keepers[].running']: _running, ...constants } = constantsOf(seen);
      const listed = Object.values(CONSTANT_ANSWERS).flat();
      expect(Object.keys(constants).sort(), JSON.stringify(constants, null, 1)).to.deep.equal([...listed].sort());
    });
  });
});
