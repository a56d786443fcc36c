import { Worker } from 'node:worker_threads';
import { readAction } from '../../core/wire/action.js';
import { readSignedRequest } from '../../core/wire/request.js';
import { verifyRequest } from '../../server/orders/verify.js';
import { interleaved, median } from './measure.js';
import type { Row } from './measure.js';
import { orderBodies } from './requests.js';

/** Actions of one pass. */
const COUNT = 1_000;
/** Actions per message: as many as may arrive in one turn of the event loop. */
const BATCHES = [1, 20, 100, 1_000] as const;
/** Messages that the worker has at a time, so that it never waits for the next one. */
const IN_FLIGHT = 2;

interface Cost {
  /** CPU time of the calling thread, in microseconds. */
  cpuUs: number;
  wallUs: number;
}

/** CPU time of the thread that asks; the whole process's has the worker's in it. */
const threadCpuUs = (): number => {
  const { user, system } = (process as unknown as { threadCpuUsage(): NodeJS.CpuUsage }).threadCpuUsage();
  return user + system;
};

async function costOf(run: () => void | Promise<void>): Promise<Cost> {
  const [cpu, wallMs] = [threadCpuUs(), performance.now()];
  await run();
  return { cpuUs: threadCpuUs() - cpu, wallUs: (performance.now() - wallMs) * 1_000 };
}

/**
 * What the main thread does for each action when a worker recovers signers: it reads the action, which it must judge, and hands the
 * text over. Every answer is checked to have come.
 */
async function passOver(worker: Worker, bodies: readonly string[], size: number): Promise<void> {
  let sent = 0;
  let answered = 0;
  await new Promise<void>((resolve, reject) => {
    const next = (): void => {
      const part = bodies.slice(sent, sent + size);
      if (part.length === 0) return;
      sent += part.length;
      for (const body of part) readAction(readSignedRequest(JSON.parse(body)).action);
      worker.postMessage(part);
    };
    const onMessage = (signers: readonly (string | null)[]): void => {
      if (signers.includes(null)) reject(new Error('a signature names nobody'));
      answered += signers.length;
      if (answered < bodies.length) return next();
      worker.off('message', onMessage);
      resolve();
    };
    worker.on('message', onMessage);
    for (let count = 0; count < IN_FLIGHT; count += 1) next();
  });
}

/** G6: recovering signers in a worker that gets a batch per turn, hand-over included, against doing it on the main thread. */
export async function measureWorkers(): Promise<Row[]> {
  const bodies = orderBodies(COUNT, 1);
  const options = { sources: ['a'] as const, resolve: () => ({ kind: 'active', maker: '0x', sinceMs: 0 }) as const };
  const worker = new Worker(new URL('verify-worker.ts', import.meta.url), { execArgv: ['--import', 'tsx'] });
  const cpu: Record<string, number[]> = {};
  const measured = (name: string, run: () => void | Promise<void>) => async (): Promise<number> => {
    const { cpuUs, wallUs } = await costOf(run);
    (cpu[name] ??= []).push(cpuUs);
    return wallUs;
  };
  try {
    const over = (size: number) => measured(`${size}`, () => passOver(worker, bodies, size));
    const wallUs: Readonly<Record<string, number>> = await interleaved<string>({
      inline: measured('inline', () => {
        for (const body of bodies) verifyRequest(readSignedRequest(JSON.parse(body)), { ...options, hint: {} });
      }),
      ...Object.fromEntries(BATCHES.map((size) => [size, over(size)])),
    });
    const cpuUs = (name: string): number => median((cpu[name] ?? []).slice(1));
    return BATCHES.flatMap((size): Row[] => {
      const what = `verify worker, ${size} per message`;
      // No goal for single actions, for which a worker is not meant, and none for rates, which depend on what else uses the other cores.
      const bound = size === 1 ? null : { atMost: 0.15 };
      return [
        { goal: 'G6', what: `${what}: main CPU`, value: cpuUs(`${size}`) / cpuUs('inline'), unit: 'x', bound },
        { goal: 'G6', what: `${what}: rate`, value: wallUs.inline! / wallUs[size]!, unit: 'x', bound: null },
      ];
    });
  } finally {
    await worker.terminate();
  }
}
