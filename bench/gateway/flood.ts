import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { openConnection } from './client.js';
import type { Connection } from './client.js';
import { inRounds, median, medianRatio } from './measure.js';
import type { Row } from './measure.js';
import { orderAction, signedBody } from './requests.js';
import { startServer } from './server.js';

const ROUNDS = 5;
const ORDERS = 60;
/** How long the flood runs before anything is measured, so that its full effect is there. */
const FLOOD_MS = 500;

async function orderMs(connection: Connection, maker: number): Promise<number> {
  const body = signedBody(orderAction(1), maker);
  const startedMs = performance.now();
  const text = await connection.post(body);
  if (!text.includes('resting')) throw new Error(`a maker's order was refused: ${text.slice(0, 200)}`);
  return performance.now() - startedMs;
}

/** G15: what a maker's order takes while eight connections from the same address send unsigned requests of 1 MiB, against an idle gateway. */
export async function measureFlood(): Promise<Row[]> {
  const server = await startServer('durable');
  const flooder = fork(new URL('flooder.ts', import.meta.url), [String(server.port)]);
  const ended = once(flooder, 'exit').then(() => {
    throw new Error('the flood ended');
  });
  ended.catch(() => undefined);
  const heard = async (): Promise<number> => {
    const [{ answered }] = (await Promise.race([once(flooder, 'message'), ended])) as [{ answered: number }];
    return answered;
  };
  let answered = 0;
  const tell = async (word: 'on' | 'off'): Promise<void> => {
    flooder.send(word);
    answered = await heard();
  };
  try {
    await heard();
    const own = await openConnection(server.port);
    const kept = async (): Promise<number> => {
      const times: number[] = [];
      for (let count = 0; count < ORDERS; count += 1) times.push(await orderMs(own, count));
      return median(times);
    };
    /** Sends an order over a new connection, on which no valid signature of a maker has come before. */
    const anew = async (): Promise<number> => {
      const times: number[] = [];
      for (let count = 0; count < ORDERS / 4; count += 1) {
        const connection = await openConnection(server.port);
        times.push(await orderMs(connection, count));
        connection.close();
      }
      return median(times);
    };
    const flooded = (measure: () => Promise<number>) => async (): Promise<number> => {
      await tell('on');
      await delay(FLOOD_MS);
      const ms = await measure();
      await tell('off');
      return ms;
    };
    const ms = await inRounds({ idle: kept, flooded: flooded(kept), anew, floodedAnew: flooded(anew) }, ROUNDS);
    own.close();
    return [
      {
        goal: 'G15',
        what: "p50 of a maker's order under a flood / idle",
        value: medianRatio(ms.flooded, ms.idle),
        unit: 'x',
        bound: { atMost: 3 },
      },
      {
        goal: '',
        what: 'the same, a new connection for each order',
        value: median(ms.floodedAnew),
        unit: 'ms',
        bound: null,
      },
      { goal: '', what: 'the same, idle', value: median(ms.anew), unit: 'ms', bound: null },
      { goal: '', what: "p50 of a maker's order, idle", value: median(ms.idle), unit: 'ms', bound: null },
      { goal: '', what: 'requests of the flood that were answered', value: answered, unit: '', bound: null },
    ];
  } finally {
    flooder.disconnect();
    server.stop();
  }
}
