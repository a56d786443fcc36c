/** The measured server from outside. */
import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openConnection } from '../gateway/client.js';
import { checkBackend } from '../gateway/server.js';
import { connectClient, type Client } from '../read/client.js';

/** CPU time in microseconds: of the server's process, and of the processes of PostgreSQL that serve it. */
export interface CpuTime {
  cpuUs: number;
  databaseUs: number;
}

export interface ScaleServer {
  /** Answers to one body per connection, sent at once over so many kept connections as there are bodies; each must be accepted. */
  send(bodies: readonly string[]): Promise<string[]>;
  /** CPU time since an earlier point. */
  cpuSince(before: CpuTime): Promise<CpuTime>;
  cpu(): Promise<CpuTime>;
  /** Rows of the order log, and bytes of its table with its indexes. */
  log(): Promise<{ rows: number; bytes: number }>;
  /** Bytes of its heap after a collection. */
  heap(): Promise<{ bytes: number }>;
  /** Asks for one path over kept connections. */
  reader: Client;
  stop(): Promise<void>;
}

/** Starts a server over a new schema of PostgreSQL, with `connections` of clients. The schema goes when it stops. */
export async function startScaleServer(url: string, connections: number): Promise<ScaleServer> {
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const child = fork(new URL('child.ts', import.meta.url), [url, schema], {
    execArgv: ['--import', 'tsx', '--expose-gc'],
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the measured server ended');
  });
  ended.catch(() => undefined);
  const hear = async <T>(): Promise<T> => ((await Promise.race([once(child, 'message'), ended])) as [T])[0];
  const { port, backend } = await hear<{ port: number; backend: string }>();
  checkBackend({ backend });
  const open = await Promise.all(Array.from({ length: connections }, () => openConnection(port)));
  const reader = await connectClient(port);

  async function ask<T>(question: 'cpu' | 'log' | 'heap'): Promise<T> {
    const answer = hear<T>();
    child.send(question);
    return answer;
  }

  return {
    async send(bodies) {
      const answers = await Promise.allSettled(bodies.map((body, index) => open[index]!.post(body)));
      return answers.map((answer) => {
        if (answer.status === 'rejected') throw answer.reason as Error;
        if (/"error"|"err"/.test(answer.value)) throw new Error(answer.value.slice(0, 300));
        return answer.value;
      });
    },
    cpu: () => ask('cpu'),
    async cpuSince(before) {
      const { cpuUs, databaseUs } = await ask<CpuTime>('cpu');
      return { cpuUs: cpuUs - before.cpuUs, databaseUs: databaseUs - before.databaseUs };
    },
    log: () => ask('log'),
    heap: () => ask('heap'),
    reader,
    async stop() {
      for (const connection of open) connection.close();
      reader.close();
      const exit = once(child, 'exit');
      child.disconnect();
      await exit;
    },
  };
}
