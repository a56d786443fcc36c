/** Gateways that are killed in the middle of orders, each time taken over by a standby that followed the log. PostgreSQL only. */
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { freePort } from '../../deploy/sandbox/ports.js';
import { openDb } from '../../ledger/db/db.js';
import { readOrderRows } from '../../ledger/orders/order-log.js';
import { startChild, type Child } from '../support/child.js';
import { accountOf, forPostgresUrl, startStack, until, type Stack, type TestDatabase } from '../support/stack.js';
import { FIRST_ASSET } from '../support/trading.js';

const KILLS = 3;
/** Acknowledged by each gateway before it is killed. */
const LEAST_ORDERS = 20;

forPostgresUrl((database, open) => {
  describe(`A gateway's standby, on ${database}`, function () {
    this.timeout(300_000);
    let db: TestDatabase;
    let stack: Stack;
    const children: Child[] = [];

    before(async () => {
      db = await open();
      stack = await startStack({ databaseUrl: db.url, processes: ['watcher,poster,settler,executor'] });
      await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    });

    after(async () => {
      await Promise.all(children.map((child) => child.end('SIGKILL')));
      await stack?.close();
      await db?.drop();
    });

    /** A gateway at a port of its own. */
    async function serve() {
      const port = await freePort('127.0.0.1');
      const args = ['serve', '--manifest', stack.manifestPath, '--database', db.url, '--port', `${port}`];
      const child = startChild('cli/main.ts', [...args, '--roles', 'gateway'], { LOG_LEVEL: 'info' });
      children.push(child);
      const url = `http://127.0.0.1:${port}`;
      const answers = (path: string, status: number): Promise<void> =>
        until(`${path} to answer ${status}`, async () => {
          if (child.process.exitCode !== null) throw new Error(`it ended:\n${child.output()}`);
          return (await fetch(`${url}${path}`).catch(() => null))?.status === status;
        });
      const transport = new HttpTransport({ apiUrl: url });
      const wallet = new Wallet(accountOf(stack, 'maker1').privateKey);
      const exchange = new ExchangeClient({ transport, wallet });
      return { child, url, answers, exchange, info: new InfoClient({ transport }) };
    }
    type Gateway = Awaited<ReturnType<typeof serve>>;

    /** The id of a new order, or null when it was not acknowledged. */
    async function place({ exchange }: Gateway, cloid: `0x${string}`): Promise<number | null> {
      const order = { a: FIRST_ASSET, b: true, p: '1000', s: '0.1', r: false, t: { limit: { tif: 'Gtc' as const } } };
      const reply = await exchange.order({ orders: [{ ...order, c: cloid }], grouping: 'na' }).catch(() => null);
      const [status] = reply?.response.data.statuses ?? [];
      return typeof status === 'object' && 'resting' in status ? status.resting.oid : null;
    }

    it('goes on from every order that was acknowledged, in place and at its own address, kill after kill', async () => {
      let active = await serve();
      await active.answers('/active', 200);
      const acknowledged = new Map<string, number>();
      let count = 0;
      const nextCloid = (): `0x${string}` => `0x${(count += 1).toString(16).padStart(32, '0')}`;
      await until('a first order', async () => {
        const cloid = nextCloid();
        const oid = await place(active, cloid);
        if (oid !== null) acknowledged.set(cloid, oid);
        return oid !== null;
      });
      for (let kill = 1; kill <= KILLS; kill += 1) {
        const standby = await serve();
        await standby.answers('/ready', 200);
        expect((await fetch(`${standby.url}/active`)).status).to.equal(503);
        const from = acknowledged.size;
        let isOver = false;
        const stream = Array.from({ length: 4 }, async () => {
          while (!isOver) {
            const cloid = nextCloid();
            const oid = await place(active, cloid);
            if (oid !== null) acknowledged.set(cloid, oid);
          }
        });
        await until('orders', () => Promise.resolve(acknowledged.size >= from + LEAST_ORDERS));
        await active.child.end('SIGKILL');
        isOver = true;
        await Promise.all(stream);
        await standby.answers('/active', 200);
        expect(
          standby.child.errors().some((line) => line.includes('the standby takes actions')),
          'in place',
        ).to.equal(true);
        const user = accountOf(stack, 'maker1').address;
        const open = new Map((await standby.info.openOrders({ user })).map(({ oid, cloid }) => [cloid as string, oid]));
        for (const [cloid, oid] of acknowledged) expect(open.get(cloid), `order ${oid}`).to.equal(oid);
        active = standby;
        await until('an order after the promotion', async () => {
          const cloid = nextCloid();
          const oid = await place(active, cloid);
          if (oid !== null) acknowledged.set(cloid, oid);
          return oid !== null;
        });
      }
      const read = await openDb(db.url);
      try {
        const rows = await readOrderRows(read.knex, { after: 0, limit: 10_000 });
        expect(rows.map(({ orderSeq }) => orderSeq)).to.deep.equal(rows.map((_, i) => i + 1));
        const opened = rows.flatMap(({ effects }) => effects).filter((effect) => effect.type === 'open');
        const stored = Map.groupBy(opened, ({ cloid }) => cloid!);
        for (const [cloid, orders] of stored) expect(orders, `order ${cloid}`).to.have.length(1);
        for (const [cloid, oid] of acknowledged) expect(stored.get(cloid)?.[0]?.oid, `order ${oid}`).to.equal(oid);
        expect(new Set(opened.map(({ oid }) => oid)).size).to.equal(opened.length);
      } finally {
        await read.close();
      }
    });
  });
});
