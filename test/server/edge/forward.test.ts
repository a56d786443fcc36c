/** A gateway that owns the order log and one that hands actions over to it, with a bus between them that loses messages. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createLink, type Link } from '../../../server/edge/link.js';
import { createSequencer } from '../../../server/edge/sequencer.js';
import type { Asked, Bus } from '../../../server/edge/bus.js';
import { createGateway, type Gateway } from '../../../server/orders/engine.js';
import { readOrderRows } from '../../../ledger/orders/order-log.js';
import type { OrderLogRow } from '../../../core/types.js';
import type { Db, Writer } from '../../../ledger/types.js';
import type { ExchangeReply, GatewayDeps } from '../../../server/orders/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { addressOf, freshDatabase, operate, seed, signRequest } from '../../support/gateway.js';
import { limit, orderAction } from '../../support/gateway-suite.js';

const SECRET = 'a secret of tests, which protects nothing';
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What happens to the next request. */
type Fault = 'none' | 'request lost' | 'reply lost' | 'not connected';

interface World {
  edge: Gateway;
  link: Link;
  db: Db;
  faults: Fault[];
  /** Another process takes the log over. */
  takeOver(): Promise<void>;
  rows(): Promise<OrderLogRow[]>;
  close(): Promise<void>;
}

async function startWorld(kind: 'sqlite' | 'pg', verifies = false, timeoutMs = 600): Promise<World> {
  const database = await freshDatabase(kind);
  const [db, edgeDb] = [await database.open(), await database.open()];
  await seed(db);
  const stopping = new AbortController();
  const ends: Promise<void>[] = [];
  const deps = (forDb: Db): Omit<GatewayDeps, 'writer'> => ({
    db: forDb,
    config: {
      ...{ sources: ['a', 'b'], signatureChainIds: null, failuresPerMinute: 50, pollMs: 20 },
      ...{ referencePrices: {}, minOrderUnits: () => 0n },
    },
    readiness: () => ({ ready: true, reason: null }),
    clock: () => Date.now(),
    logger: silent,
  });
  let owner: { handle(data: Uint8Array): Promise<Uint8Array | null>; epoch: number } | null = null;
  let held: Writer | null = null;

  async function takeOver(): Promise<void> {
    // On PostgreSQL one waits until the other is gone; on SQLite the newer one wins.
    if (kind === 'pg') await held?.release();
    const writer = await acquireWriter(db, 'order');
    held = writer;
    const gateway = await createGateway({ ...deps(db), writer });
    ends.push(gateway.run(stopping.signal).catch(() => undefined));
    const { epoch } = writer;
    const sequencer = createSequencer({
      ...{ gateway, secret: SECRET, deploymentId: '00aa', epoch, verifies },
      ...{ clock: () => Date.now(), logger: silent },
    });
    owner = { handle: sequencer.handle, epoch };
  }

  const faults: Fault[] = [];
  const bus: Bus = {
    isConnected: () => true,
    lost: () => 0,
    async request(subject, data): Promise<Asked> {
      // A probe is as short as its head.
      const fault = data.length < 250 ? 'none' : (faults.shift() ?? 'none');
      const to = owner;
      if (fault === 'not connected') return { kind: 'undelivered' };
      if (to === null || fault === 'request lost' || !subject.endsWith(`.${to.epoch}`)) return { kind: 'unknown' };
      const reply = await to.handle(data);
      return fault === 'reply lost' || reply === null ? { kind: 'unknown' } : { kind: 'reply', data: reply };
    },
    serve: () => () => undefined,
    close: () => Promise.resolve(),
  };
  await takeOver();
  const link = createLink({
    ...{ bus, db: edgeDb, secret: SECRET, deploymentId: '00aa', tickMs: 1, timeoutMs, maxWaiting: 100 },
    clock: () => Date.now(),
    monotonicMs: () => performance.now(),
    logger: silent as never,
  });
  const edge = await createGateway({ ...deps(edgeDb), writer: null, forward: link.forward });
  ends.push(edge.run(stopping.signal).catch(() => undefined));
  return {
    ...{ edge, link, db, faults, takeOver },
    rows: () => readOrderRows(db.knex, { after: 0, limit: 10_000 }),
    async close() {
      await link.close();
      stopping.abort();
      await Promise.all(ends);
      await edgeDb.close();
      await db.close();
      await database.dispose();
    },
  };
}

let nonce = Date.now();
const sign = (action: object): object => signRequest(action, 1, (nonce += 1));
const bodyOf = (price: string): object => sign(orderAction(limit(true, price, '0.1')));
const oidOf = (reply: ExchangeReply): number | null => {
  const [status] = reply.status === 'ok' ? (reply.response.data?.statuses ?? []) : [];
  return typeof status === 'object' && 'resting' in status ? status.resting.oid : null;
};

for (const kind of process.env.DATABASE_URL?.startsWith('postgres') === true
  ? (['sqlite', 'pg'] as const)
  : (['sqlite'] as const)) {
  describe(`An edge, on ${kind}`, () => {
    let world: World;
    afterEach(() => world?.close());

    it('answers with what the owner of the log has stored, and reads it itself by then', async () => {
      world = await startWorld(kind);
      const { reply, maker } = await world.edge.submit(bodyOf('1000'));
      const oid = oidOf(reply);
      expect(maker).to.equal(addressOf(1));
      expect(world.edge.order(oid!)?.state).to.equal('open');
      expect(world.edge.isActive()).to.equal(false);
      expect(await world.rows()).to.have.length(1);
    });

    it('repeats an action whose reply was lost without a second execution, also after a takeover', async () => {
      world = await startWorld(kind, false, 5_000);
      world.faults.push('reply lost');
      expect(oidOf((await world.edge.submit(bodyOf('1000'))).reply)).to.equal(1);
      const body = bodyOf('1001');
      const { reply: first } = await world.edge.submit(body);
      await world.takeOver();
      // The new owner has no memory of what the earlier one said.
      expect((await world.edge.submit(body)).reply).to.deep.equal(first);
      const cancel = sign({ type: 'cancel', cancels: [{ a: 10_000, o: 1 }] });
      const { reply: canceled } = await world.edge.submit(cancel);
      await world.takeOver();
      expect((await world.edge.submit(cancel)).reply).to.deep.equal(canceled);
      expect(await world.rows()).to.have.length(3);
    });

    it('refuses another action with a nonce that was used', async () => {
      world = await startWorld(kind);
      const used = (nonce += 1);
      await world.edge.submit(signRequest(orderAction(limit(true, '1000', '0.1')), 1, used));
      const other = await world.edge.submit(signRequest(orderAction(limit(true, '1001', '0.1')), 1, used));
      expect(other.reply).to.have.property('status', 'err');
      expect((other.reply as { response: string }).response).to.match(/^duplicate_nonce: /);
    });

    it('knows a maker that was approved, and an agent that was named, a moment ago elsewhere', async () => {
      world = await startWorld(kind);
      await operate(world.db, 'approve', addressOf(3));
      const body = signRequest(orderAction(limit(true, '1000', '0.1')), 3, (nonce += 1));
      expect(oidOf((await world.edge.submit(body)).reply)).to.equal(1);
    });

    it('says truly what became of each action, whatever is lost and whoever owns the log', async function () {
      this.timeout(300_000);
      const fault = fc.constantFrom<Fault[]>('none', 'none', 'request lost', 'reply lost', 'not connected');
      const step = fc.record({
        faults: fc.array(fault, { maxLength: 4 }),
        orders: fc.integer({ min: 1, max: 4 }),
        takesOver: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
          const one = await startWorld(kind, false, 250);
          try {
            const answered: { nonce: number; oid: number | null; code: string }[] = [];
            for (const { faults, orders, takesOver } of steps) {
              one.faults.push(...faults);
              const sent = Array.from({ length: orders }, async () => {
                const own = (nonce += 1);
                const body = signRequest(orderAction(limit(true, '1000', '0.01')), 1, own);
                try {
                  answered.push({ nonce: own, oid: oidOf((await one.edge.submit(body)).reply), code: 'ok' });
                } catch (error) {
                  answered.push({ nonce: own, oid: null, code: (error as { code?: string }).code ?? String(error) });
                }
              });
              if (takesOver) await one.takeOver();
              await Promise.all(sent);
            }
            const rows = await one.rows();
            for (const { nonce: own, oid, code } of answered) {
              const stored = rows.filter((row) => row.nonce === own);
              expect(code).to.be.oneOf(['ok', 'standby', 'outcome_unknown']);
              if (code === 'ok')
                expect(stored.flatMap(({ effects }) => effects)).to.have.nested.property('[0].oid', oid);
              if (code === 'standby') expect(stored).to.have.length(0);
              expect(stored.length).to.be.at.most(1);
            }
          } finally {
            await one.close();
          }
        }),
        { numRuns: 8 },
      );
    });
  });

  describe(`A gateway that recovers signers again, on ${kind}`, () => {
    let world: World;
    afterEach(() => world?.close());

    it('takes what was signed, and not what an edge only claims', async () => {
      world = await startWorld(kind, true);
      expect(oidOf((await world.edge.submit(bodyOf('1000'))).reply)).to.equal(1);
      const { action, signature } = bodyOf('1001') as {
        action: { type: string };
        signature: { r: string; s: string; v: 27 };
      };
      const request = { action, signature, nonce: (nonce += 1), vaultAddress: null, expiresAfter: null };
      const { reply } = await world.link.forward.submit({ signer: addressOf(2), request });
      expect(reply).to.deep.equal({ status: 'err', response: 'bad_signature: Unable to recover signer.' });
      expect(await world.rows()).to.have.length(1);
    });
  });
}
