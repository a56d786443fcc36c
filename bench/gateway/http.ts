import { inRounds, interleaved, median, medianRatio } from './measure.js';
import type { Row } from './measure.js';
import { QUOTING, RESERVED, orderAction, orderBodies, signedBody } from './requests.js';
import { checkBackend, checkStored, startServer } from './server.js';
import type { Server } from './server.js';
import type { Baselines } from './verify.js';

/** Many short rounds: other work of the machine starts and stops within tenths of a second. */
const ROUNDS = 21;
const SINGLES = 320;
const BATCHES = 64;
/**
 * Requests before anything is measured, the same for every server: the engine goes on compiling a new process for more than ten thousand requests.
 * Those that are sent one at a time are a transaction each, of which the later load has few.
 */
const WARM_ALONE = 1_000;
const WARM_SINGLES = 12_000;
const WARM_BATCHES = 900;

/** G3, G4, G5 and G14: whole requests, by the CPU time that the server spends on one; and cancelling a thousand orders at once. */
export async function measureHttp({ recover, verify }: Baselines): Promise<Row[]> {
  const [durable, unstored, raw, koa] = await Promise.all(
    ['durable', 'unstored', 'raw', 'koa'].map((mode) => startServer(mode)),
  );
  if (durable === undefined || unstored === undefined || raw === undefined || koa === undefined)
    throw new Error('no server');
  const servers = [durable, unstored, raw, koa];
  try {
    checkBackend(durable);
    await warm(servers);
    /** The bodies of the round, which each server gets once. */
    const bodies = new Map<Server, string[]>();
    const singles = (server: Server) => async () => {
      if (!bodies.has(server)) {
        const next = orderBodies(SINGLES, 1);
        for (const each of servers) bodies.set(each, next);
      }
      const own = bodies.get(server)!;
      bodies.delete(server);
      return (await server.load(own)) / SINGLES;
    };
    const us = await inRounds(
      {
        recover,
        verify,
        durable: singles(durable),
        unstored: singles(unstored),
        raw: singles(raw),
        koa: singles(koa),
        batch: async () => {
          const batches = orderBodies(BATCHES, 20);
          // Both gateways then hold the same book.
          await unstored.load(batches);
          return (await durable.load(batches)) / (BATCHES * 20);
        },
      },
      ROUNDS,
    );
    const before = await durable.state();
    await durable.load(Array.from({ length: QUOTING }, (_, index) => signedBody(orderAction(300), index)));
    const after = await durable.state();
    const bytesPerOrder = (after.heapBytes - before.heapBytes) / (QUOTING * 300);
    const cancelAll = await measureCancelAll(durable);
    await checkStored(durable);
    return [
      {
        goal: 'G3',
        what: 'durable single order / recover',
        value: medianRatio(us.recover, us.durable),
        unit: 'x',
        bound: { atLeast: 0.25 },
      },
      {
        goal: 'G3',
        what: 'durable single order / parse + verify',
        value: medianRatio(us.verify, us.durable),
        unit: 'x',
        bound: { atLeast: 0.35 },
      },
      {
        goal: 'G4',
        what: 'orders in batches of 20 / recover',
        value: medianRatio(us.recover, us.batch),
        unit: 'x',
        bound: { atLeast: 3 },
      },
      {
        goal: 'G5',
        what: 'CPU with SQLite / without a store',
        value: medianRatio(us.durable, us.unstored),
        unit: 'x',
        bound: { atMost: 1.15 },
      },
      {
        goal: 'G14',
        what: 'Koa path / raw node:http echo',
        value: medianRatio(us.koa, us.raw),
        unit: 'x',
        bound: { atMost: 2.2 },
      },
      { goal: '', what: 'durable single order, server CPU', value: median(us.durable), unit: 'us', bound: null },
      { goal: '', what: 'cancel of 1,000 orders, server CPU', value: cancelAll / 1_000, unit: 'ms', bound: null },
      { goal: '', what: 'heap per open order', value: bytesPerOrder, unit: 'B', bound: null },
    ];
  } finally {
    for (const server of servers) server.stop();
  }
}

async function warm(servers: readonly Server[]): Promise<void> {
  const loads = [
    { bodies: orderBodies(WARM_ALONE, 1), connections: 1 },
    { bodies: orderBodies(WARM_SINGLES, 1), connections: undefined },
    { bodies: orderBodies(WARM_BATCHES, 20), connections: undefined },
  ];
  for (const { bodies, connections } of loads) for (const server of servers) await server.load(bodies, connections);
}

/** CPU time of cancelling a thousand open orders in one request. A maker of its own places them anew each time. */
async function measureCancelAll(server: Server): Promise<number> {
  const { cancel } = await interleaved({
    cancel: async () => {
      const placed = JSON.parse(await server.call(signedBody(orderAction(1_000), RESERVED))) as Placed;
      const cancels = placed.response.data.statuses.map(({ resting }) => ({ a: 10000, o: resting.oid }));
      return server.load([signedBody({ type: 'cancel', cancels }, RESERVED)]);
    },
  });
  return cancel;
}

interface Placed {
  response: { data: { statuses: { resting: { oid: number } }[] } };
}
