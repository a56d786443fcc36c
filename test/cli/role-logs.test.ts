import { expect } from 'chai';
import { pino } from 'pino';
import { acquireLogs } from '../../cli/roles/logs.js';
import { forEachDatabase } from '../support/db.js';

describe('Logs of roles', () => {
  forEachDatabase((_name, open) => {
    it('are settled only when no take is under way any more, and none is kept that came too late', async () => {
      const db = await open();
      const stop = new AbortController();
      let queries = 0;
      db.knex.on('query', ({ sql }: { sql: string }) => {
        if (sql.includes('writers')) stop.abort(new Error('stop'));
        queries += 1;
      });
      const options = { signal: stop.signal, onLost: () => undefined, logger: pino({ level: 'silent' }) };
      const logs = acquireLogs(db, ['gateway', 'watcher'], options);
      await logs.settled;
      const before = queries;
      expect(logs.held.size).to.equal(0);
      expect(await logs.begun.catch((error: Error) => error.message)).to.equal('stop');
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(queries, 'queries after that').to.equal(before);
    });
  });
});
