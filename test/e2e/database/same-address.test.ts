/** A standby at the address of the process whose logs it takes over, on one machine: that one may be frozen, and keep the address. PostgreSQL only. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { startChild } from '../../support/child.js';
import { forPostgresUrl, startStack, until, type Stack, type TestDatabase } from '../../support/stack.js';

/** Longer than a start waits for logs that nobody has. */
const ON_STANDBY_MS = 11_000;

forPostgresUrl((name, open) => {
  describe(`A standby at its holder's address, on ${name}`, function () {
    this.timeout(240_000);
    const roles = 'gateway,watcher';
    let database: TestDatabase;
    let stack: Stack;

    before(async () => {
      database = await open();
      stack = await startStack({ databaseUrl: database.url, processes: [roles] });
    });

    after(async () => {
      await stack?.close();
      await database?.drop();
    });

    const startSecond = () => {
      const { port } = new URL(stack.manifest.serverUrl);
      const where = ['--manifest', stack.manifestPath, '--database', database.url, '--port', port];
      return startChild('cli/main.ts', ['serve', ...where, '--roles', roles], { LOG_LEVEL: 'info' });
    };

    it('ends with 75 when it may serve and the address is not free, so that it is started again', async () => {
      const standby = startSecond();
      const says = (text: string): boolean => standby.errors().some((line) => line.includes(text));
      await until('it to stand by', () => Promise.resolve(says('on standby without serving reads')));
      await delay(ON_STANDBY_MS);
      process.kill(stack.pid(roles), 'SIGSTOP');
      try {
        const code = await Promise.race([standby.ended, delay(60_000, 'it still runs', { ref: false })]);
        expect(code, standby.output()).to.equal(75);
        expect(standby.output()).to.include('PORT');
      } finally {
        process.kill(stack.pid(roles), 'SIGCONT');
        await standby.end('SIGKILL');
      }
    });
  });
});
