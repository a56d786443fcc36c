/** A standby with the roles of two processes takes each role over as its log falls free, and holds none that nobody follows. PostgreSQL only. */
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { freePort } from '../../deploy/sandbox/ports.js';
import { startChild, type Child } from '../support/child.js';
import { accountOf, forPostgresUrl, startStack, until, type Stack, type TestDatabase } from '../support/stack.js';
import { FIRST_ASSET } from '../support/trading.js';

const CHAIN_SIDE = 'watcher,settler';
const BOOK_SIDE = 'gateway,poster,executor';
const LIMIT_MS = 90_000;

interface Line {
  msg: string;
  roles?: string[];
  waiting?: string[];
  role?: string;
}

forPostgresUrl((database, open) => {
  describe(`A standby for several processes, on ${database}`, function () {
    this.timeout(300_000);
    let db: TestDatabase;
    let stack: Stack;
    const children: Child[] = [];

    before(async () => {
      db = await open();
      stack = await startStack({ databaseUrl: db.url, processes: [CHAIN_SIDE, BOOK_SIDE] });
      await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    });

    after(async () => {
      await Promise.all(children.map((child) => child.end('SIGKILL')));
      await stack?.close();
      await db?.drop();
    });

    /** A process with every role, at a port of its own. */
    async function serve() {
      const port = await freePort('127.0.0.1');
      const args = ['serve', '--manifest', stack.manifestPath, '--database', db.url, '--port', `${port}`];
      const metricsPort = await freePort('127.0.0.1');
      const child = startChild('cli/main.ts', args, { LOG_LEVEL: 'info', ROLES: '', METRICS_PORT: `${metricsPort}` });
      children.push(child);
      const said = (msg: string): Line[] =>
        child
          .errors()
          .filter((line) => line.includes(msg))
          .map((line) => JSON.parse(line) as Line);
      const says = (msg: string, times = 1): Promise<void> =>
        until(
          `"${msg}"`,
          () => {
            if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.output()}`);
            return Promise.resolve(said(msg).length >= times);
          },
          LIMIT_MS,
        );
      const metrics = (): Promise<Response> => fetch(`http://127.0.0.1:${metricsPort}/metrics`);
      return { child, url: `http://127.0.0.1:${port}`, said, says, metrics };
    }

    const sorted = (roles: string): string[] => roles.split(',').sort();

    async function place(url: string): Promise<number | null> {
      const transport = new HttpTransport({ apiUrl: url });
      const exchange = new ExchangeClient({ transport, wallet: new Wallet(accountOf(stack, 'maker1').privateKey) });
      const order = { a: FIRST_ASSET, b: true, p: '1000', s: '0.1', r: false, t: { limit: { tif: 'Gtc' as const } } };
      const reply = await exchange.order({ orders: [order], grouping: 'na' }).catch(() => null);
      const [status] = reply?.response.data.statuses ?? [];
      return typeof status === 'object' && 'resting' in status ? status.resting.oid : null;
    }

    /** Ids of orders that a server took, until it takes one: it does so while the ledger is ready. */
    async function placed(url: string): Promise<number> {
      let oid: number | null = null;
      await until(`an order at ${url}`, async () => (oid = await place(url)) !== null, LIMIT_MS);
      return oid!;
    }

    const generation = async (url: string): Promise<number> => {
      const answer = (await (await fetch(`${url}/v0/status`)).json()) as { ledger: { generation: number } };
      return answer.ledger.generation;
    };

    /** The chain goes on, and so does what follows it. */
    async function follows(url: string): Promise<void> {
      const from = await generation(url);
      await until(`generations at ${url}`, async () => (await generation(url)) > from + 1, LIMIT_MS);
    }

    /** They are answered whatever of its roles waits, and say whether it is the gateway. */
    async function expectMetrics({ metrics }: Awaited<ReturnType<typeof serve>>, roles: string): Promise<void> {
      const answer = await metrics();
      expect(answer.status).to.equal(200);
      expect(/^curvebook_gateway_active 1$/m.test(await answer.text())).to.equal(roles.includes('gateway'));
    }

    for (const [first, second] of [
      [CHAIN_SIDE, BOOK_SIDE],
      [BOOK_SIDE, CHAIN_SIDE],
    ] as const) {
      it(`takes over ${first} while ${second} goes on elsewhere, and then that, too`, async () => {
        const standby = await serve();
        await standby.says('on standby: another process holds a log');
        await expectMetrics(standby, 'none');
        const orders = [await placed(stack.manifest.serverUrl)];
        await stack.kill(first);
        await standby.says('roles started');
        expect([...standby.said('roles started')[0]!.roles!].sort()).to.deep.equal(sorted(first));
        expect(standby.said('another process holds the logs')[0]!.waiting).to.deep.equal(sorted(second));
        await expectMetrics(standby, first);
        // Either side needs to know: one tells the operator, the other one chooses routes.
        const measured = async (): Promise<boolean> =>
          /^curvebook_token_uneven\{token="USDC"\} 0$/m.test(await (await standby.metrics()).text());
        await until('measured transfers', measured, LIMIT_MS);
        const active = first === CHAIN_SIDE ? stack.manifest.serverUrl : standby.url;
        await follows(active);
        orders.push(await placed(active));
        expect((await fetch(`${standby.url}/active`)).status).to.equal(first === CHAIN_SIDE ? 503 : 200);

        await stack.kill(second);
        await standby.says('a role begins', second.split(',').length);
        expect(
          standby
            .said('a role begins')
            .map(({ role }) => role)
            .sort(),
        ).to.deep.equal(sorted(second));
        orders.push(await placed(standby.url));
        await follows(standby.url);
        const info = new InfoClient({ transport: new HttpTransport({ apiUrl: standby.url }) });
        const found = await info.openOrders({ user: accountOf(stack, 'maker1').address });
        expect(found.map(({ oid }) => oid)).to.include.members(orders);

        await standby.child.end('SIGKILL');
        await stack.startServer();
      });
    }

    it('leaves all roles together: of two standbys one has all of them, and the other none', async () => {
      const [one, other] = [await serve(), await serve()];
      for (const standby of [one, other]) await standby.says('on standby: another process holds a log');
      await Promise.all([stack.kill(CHAIN_SIDE), stack.kill(BOOK_SIDE)]);
      await until(
        'one of them',
        () => Promise.resolve([one, other].some(({ said }) => said('roles started').length > 0)),
        LIMIT_MS,
      );
      const [winner, loser] = one.said('roles started').length > 0 ? [one, other] : [other, one];
      expect(winner.said('roles started')[0]!.roles).to.have.length(5);
      await placed(winner.url);
      expect(loser.said('roles started')).to.deep.equal([]);
      expect(loser.child.process.exitCode).to.equal(null);
    });
  });
});
