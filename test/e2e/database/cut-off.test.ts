/** A process that reaches its database no longer, while everybody else does: it says so, and ends, although nothing is ever answered. PostgreSQL only. */
import { createServer, connect, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { startFreezing, type Freezing } from '../../support/children/freezing.js';
import { forPostgresUrl, until, type TestDatabase } from '../../support/stack.js';

/** The holder of a log waits 9 s for an answer; twice that on a machine that does much else. */
const SAYS_SO_MS = 20_000;
/** And what it does in the end is given 5 s. */
const ENDS_MS = 30_000;

/**
 * A way to the database that forwards until it is cut: then all connections stand, and no byte passes. Where it heals, new connections pass, and those
 * from before stay silent, as behind a firewall that has lost their state.
 */
async function startWay(target: URL) {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    sockets.add(near);
    near.on('error', () => undefined);
    if (isCut) return;
    const far = connect(Number.parseInt(target.port || '5432', 10), target.hostname);
    sockets.add(far);
    far.on('error', () => near.destroy());
    far.on('close', () => near.destroy());
    near.on('close', () => far.destroy());
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  [url.hostname, url.port] = ['127.0.0.1', `${(server.address() as AddressInfo).port}`];
  return {
    url: url.toString(),
    cut() {
      isCut = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    heal() {
      isCut = false;
    },
    close() {
      sockets.forEach((socket) => socket.destroy());
      server.close();
    },
  };
}

forPostgresUrl((database, open) => {
  describe(`A process that is cut off from its database, on ${database}`, function () {
    this.timeout(240_000);
    let db: TestDatabase;
    let freezing: Freezing;
    let way: Awaited<ReturnType<typeof startWay>>;

    before(async () => {
      db = await open();
      freezing = await startFreezing(db.url);
    });

    beforeEach(async () => {
      way = await startWay(new URL(db.url));
    });

    afterEach(() => way?.close());

    after(async () => {
      await freezing?.close();
      await db?.drop();
    });

    it('is not active any more once its log counts as lost, and ends with 75 soon after', async () => {
      const gateway = freezing.serve(['gateway'], way.url);
      await gateway.says('roles started');
      const url = gateway.said('roles started')[0]!.url!;
      const probe = async (path: string): Promise<string> => {
        const answer = await fetch(`${url}${path}`).catch(() => null);
        return answer === null ? 'no answer' : `${answer.status} ${await answer.text()}`;
      };
      expect(await probe('/active')).to.match(/^200/);
      const cutMs = performance.now();
      way.cut();
      await until('it to say so', async () => !(await probe('/active')).startsWith('200'), 60_000);
      expect(performance.now() - cutMs).to.be.below(SAYS_SO_MS);
      const code = await Promise.race([gateway.child.ended, delay(60_000, 'it still runs', { ref: false })]);
      expect(performance.now() - cutMs).to.be.below(ENDS_MS);
      expect(code, gateway.child.output()).to.equal(75);
    });

    /** The code with which a process ends, within a time that a slow machine doubles. */
    const endOf = ({ child }: ReturnType<Freezing['serve']>, limitMs: number): Promise<unknown> =>
      Promise.race([child.ended, delay(limitMs, 'it still runs', { ref: false })]);

    it('ends with 75 as a standby, too, which has no log that it could lose', async () => {
      const holder = freezing.serve(['gateway', 'watcher']);
      await holder.says('roles started');
      const standby = freezing.serve(['gateway', 'watcher'], way.url);
      await standby.says('on standby');
      way.cut();
      expect(await endOf(standby, 60_000), standby.child.output()).to.equal(75);
      await holder.child.end('SIGTERM');
    });

    it('ends with 75 as a reader whose connections died, once others show that it serves an old book', async () => {
      const holder = freezing.serve(['gateway', 'watcher']);
      await holder.says('roles started');
      const reader = freezing.serve(['reader'], way.url);
      await reader.says('serving reads only');
      way.cut();
      await delay(8_000);
      way.heal();
      expect(await endOf(reader, 90_000), reader.child.output()).to.equal(75);
      expect(reader.child.output()).to.include('what is served stands still');
      await holder.child.end('SIGTERM');
    });
  });
});
