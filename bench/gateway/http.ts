import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openConnection } from './client.js';
import type { Connection } from './client.js';
import { interleaved } from './measure.js';
import type { Row } from './measure.js';
import { QUOTING, RESERVED, orderAction, orderBodies, signedBody } from './requests.js';
import type { Baselines } from './verify.js';

const CONNECTIONS = 64;
const SINGLES = 1_000;
const BATCHES = 60;
/** Requests before anything is measured: a server that has just started is still being compiled. */
const WARM_SINGLES = 3_000;
const WARM_BATCHES = 1_000;

interface Server {
  backend: string;
  /** Sends all bodies over 64 connections; every one must be accepted. CPU time of the server, in microseconds. */
  load(bodies: readonly string[]): Promise<number>;
  /** Sends one body, which must be accepted, and returns the answer. */
  call(body: string): Promise<string>;
  state(): Promise<{ rows: number; heapBytes: number }>;
  acknowledged(): number;
  stop(): void;
}

async function startServer(mode: string): Promise<Server> {
  const child: ChildProcess = fork(new URL('child.ts', import.meta.url), [mode], {
    execArgv: ['--import', 'tsx', '--expose-gc'],
  });
  const started = once(child, 'message');
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the ${mode} server ended`);
  });
  ended.catch(() => undefined);
  const [{ port, backend }] = (await Promise.race([started, ended])) as [{ port: number; backend: string }];
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => openConnection(port)));
  let acknowledged = 0;

  async function ask<T>(question: 'cpu' | 'state'): Promise<T> {
    child.send(question);
    const [answer] = (await once(child, 'message')) as [T];
    return answer;
  }

  async function post(connection: Connection, body: string): Promise<string> {
    const text = await connection.post(body);
    if (/"error"|"err"/.test(text)) throw new Error(`${mode}: ${text.slice(0, 200)}`);
    acknowledged += 1;
    return text;
  }

  return {
    backend,
    state: () => ask('state'),
    call: (body) => post(connections[0]!, body),
    acknowledged: () => acknowledged,
    async load(bodies) {
      const { cpuUs: before } = await ask<{ cpuUs: number }>('cpu');
      const queue = [...bodies].reverse();
      const worker = async (connection: Connection): Promise<void> => {
        for (let body = queue.pop(); body !== undefined; body = queue.pop()) await post(connection, body);
      };
      await Promise.all(connections.map(worker));
      return (await ask<{ cpuUs: number }>('cpu')).cpuUs - before;
    },
    stop() {
      for (const connection of connections) connection.close();
      child.disconnect();
    },
  };
}

/** G3, G4, G5 and G14: whole requests, by the CPU time that the server spends on one; and cancelling a thousand orders at once. */
export async function measureHttp({ recover, verify }: Baselines): Promise<Row[]> {
  const [durable, unstored, raw, koa] = await Promise.all(['durable', 'unstored', 'raw', 'koa'].map(startServer));
  if (durable === undefined || unstored === undefined || raw === undefined || koa === undefined)
    throw new Error('no server');
  try {
    if (durable.backend !== 'native')
      throw new Error(`signatures are recovered by ${durable.backend}, not by the native library`);
    const servers = [durable, unstored, raw, koa];
    for (const server of servers) await server.load(orderBodies(WARM_SINGLES, 1));
    await durable.load(orderBodies(WARM_BATCHES, 20));
    const singles = (server: Server) => async () => (await server.load(orderBodies(SINGLES, 1))) / SINGLES;
    const us = await interleaved({
      recover,
      verify,
      durable: singles(durable),
      unstored: singles(unstored),
      raw: singles(raw),
      koa: singles(koa),
      batch: async () => (await durable.load(orderBodies(BATCHES, 20))) / (BATCHES * 20),
    });
    const before = await durable.state();
    await durable.load(Array.from({ length: QUOTING }, (_, index) => signedBody(orderAction(300), index)));
    const after = await durable.state();
    const bytesPerOrder = (after.heapBytes - before.heapBytes) / (QUOTING * 300);
    const cancelAll = await measureCancelAll(durable);
    const { rows } = await durable.state();
    if (rows !== durable.acknowledged())
      throw new Error(`${durable.acknowledged()} acknowledged, but ${rows} rows stored`);
    return [
      {
        goal: 'G3',
        what: 'durable single order / recover',
        value: us.recover / us.durable,
        unit: 'x',
        bound: { atLeast: 0.25 },
      },
      {
        goal: 'G3',
        what: 'durable single order / parse + verify',
        value: us.verify / us.durable,
        unit: 'x',
        bound: { atLeast: 0.35 },
      },
      {
        goal: 'G4',
        what: 'orders in batches of 20 / recover',
        value: us.recover / us.batch,
        unit: 'x',
        bound: { atLeast: 3 },
      },
      {
        goal: 'G5',
        what: 'CPU with SQLite / without a store',
        value: us.durable / us.unstored,
        unit: 'x',
        bound: { atMost: 1.15 },
      },
      { goal: 'G14', what: 'Koa path / raw node:http echo', value: us.koa / us.raw, unit: 'x', bound: { atMost: 2.2 } },
      { goal: '', what: 'durable single order, server CPU', value: us.durable, unit: 'us', bound: null },
      { goal: '', what: 'cancel of 1,000 orders, server CPU', value: cancelAll / 1_000, unit: 'ms', bound: null },
      { goal: '', what: 'heap per open order', value: bytesPerOrder, unit: 'B', bound: null },
    ];
  } finally {
    for (const server of [durable, unstored, raw, koa]) server.stop();
  }
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
