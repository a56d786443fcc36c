import { expect } from 'chai';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { createRemoteStatus } from '../../../keepers/watcher/remote-status.js';
import { openDb } from '../../../ledger/db/db.js';
import { HINT_TOPICS, listenForHints, type Hints } from '../../../ledger/db/hints.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { commitGeneration, insertHalt } from '../../../ledger/chain/ledger-log.js';
import type { Db, Writer } from '../../../ledger/types.js';
import { forEachDatabase, locationOf } from '../../support/db.js';
import { OPERATOR, generationOf } from '../../support/generations.js';
import { opening } from '../../support/ledger-log.js';
import { until } from '../../support/stack.js';

const logger = pino({ level: 'silent' });

describe('Hints at commits of others', () => {
  let stop: AbortController;
  let opened: Db[];

  beforeEach(() => {
    stop = new AbortController();
    opened = [];
  });

  forEachDatabase((_name, open) => {
    afterEach(async () => {
      stop.abort();
      for (const db of opened.splice(0)) await db.close();
    });

    /** Two processes on one database: one that writes the ledger log, and one that listens. */
    async function start(): Promise<{ db: Db; other: Db; writer: Writer; hints: Hints; told: string[] }> {
      const db = await open();
      const { url, schema } = locationOf(db);
      const other = await openDb(url, schema === undefined ? {} : { schema });
      opened.push(other);
      const hints = listenForHints(other, { signal: stop.signal, logger });
      const told: string[] = [];
      for (const topic of HINT_TOPICS) hints.on(topic, () => told.push(topic));
      if (db.kind === 'pg') await until('the connection', () => Promise.resolve(hints.facts()?.connected === true));
      told.length = 0;
      return { db, other, writer: await acquireWriter(db, 'ledger'), hints, told };
    }

    const commit = ({ db, writer }: { db: Db; writer: Writer }, n: number) =>
      writer.tx((tx) => commitGeneration(tx, db, n === 1 ? opening() : generationOf(n), { operator: OPERATOR }));

    it('come with the commit, once per transaction and topic, never before it and never without it', async () => {
      const world = await start();
      const { db, writer, hints, told } = world;
      if (db.kind === 'sqlite') {
        await commit(world, 1);
        stop.abort();
        await hints.done;
        expect([told, hints.facts()], 'one process has the file for itself').to.deep.equal([[], null]);
        return;
      }
      await writer.tx(async (tx) => {
        await commitGeneration(tx, db, opening(), { operator: OPERATOR });
        await insertHalt(tx, { code: 'test', message: '', timeMs: 1 });
        await delay(50);
        expect(told, 'nothing is committed yet').to.deep.equal([]);
      });
      await until('hints', () => Promise.resolve(told.length > 0));
      expect(told.toSorted()).to.deep.equal(['claims', 'ledger']);
      told.length = 0;
      await writer
        .tx(async (tx) => {
          await commitGeneration(tx, db, generationOf(2), { operator: OPERATOR });
          throw new Error('rolled back');
        })
        .catch(() => undefined);
      await commit(world, 2);
      await until('a hint', () => Promise.resolve(told.length > 0));
      expect(told).to.deep.equal(['ledger']);
      expect(hints.facts()).to.include({ connected: true, received: 3 });
    });

    it('wake a follower that would have slept for an hour, after its connection was cut, too', async () => {
      const world = await start();
      const { db, other, hints } = world;
      if (db.kind === 'sqlite') return;
      const { status, start: follow } = createRemoteStatus({
        ...{ db: other, markets: [], deploymentBlock: 1, pollIntervalMs: 3_600_000, logger },
        ...{ onGeneration: () => undefined, onReversal: () => undefined },
      });
      const loop = follow(stop.signal);
      hints.on('ledger', loop.wake);
      await commit(world, 1);
      await until('the first generation', () => Promise.resolve(status().inventoryRevision === 1));
      const ended = await db.knex.raw<{ rows: unknown[] }>(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name = 'curvebook hints' and datname = current_database()`,
      );
      expect(ended.rows).to.not.have.length(0);
      // Told to nobody: the next connection begins with a look.
      await commit(world, 2);
      await until('the second generation', () => Promise.resolve(status().inventoryRevision === 2));
      await until('the connection', () => Promise.resolve(hints.facts()?.connected === true));
      expect(hints.facts()!.lost).to.be.at.least(1);
      await commit(world, 3);
      await until('the third generation', () => Promise.resolve(status().inventoryRevision === 3));
      stop.abort();
      await loop.done;
      await hints.done;
      expect(hints.facts()!.connected).to.equal(false);
    });

    it('are those of this schema alone', async () => {
      const world = await start();
      if (world.db.kind === 'sqlite') return;
      const neighbour = await open();
      const writer = await acquireWriter(neighbour, 'ledger');
      await writer.tx((tx) => commitGeneration(tx, neighbour, opening(), { operator: OPERATOR }));
      await commit(world, 1);
      await until('a hint', () => Promise.resolve(world.told.length > 0));
      expect(world.told.toSorted()).to.deep.equal(['claims', 'ledger']);
      expect(world.hints.facts()!.received).to.equal(2);
    });
  });
});
