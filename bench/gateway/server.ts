import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openConnection } from './client.js';
import type { Connection } from './client.js';

const CONNECTIONS = 64;

/** A measured server in a process of its own. */
export interface Server {
  backend: string;
  port: number;
  /** Sends all bodies over 64 connections, or fewer; every one must be accepted. CPU time of the server, in microseconds. */
  load(bodies: readonly string[], count?: number): Promise<number>;
  /** CPU time that it has used, in microseconds. */
  cpuUs(): Promise<number>;
  /** Sends one body, which must be accepted, and returns the answer. */
  call(body: string): Promise<string>;
  state(): Promise<{ rows: number; heapBytes: number }>;
  acknowledged(): number;
  stop(): void;
}

/**
 * Starts a server: `durable`, the gateway; `budgeted`, the same with the budget of queries that is the default; `unstored`, the same without a store; `raw` and `koa`, echoes. `requires` names modules
 * that it loads before anything else.
 */
export async function startServer(mode: string, requires: readonly string[] = []): Promise<Server> {
  const child: ChildProcess = fork(new URL('child.ts', import.meta.url), [mode], {
    execArgv: [...requires.flatMap((module) => ['--require', module]), '--import', 'tsx', '--expose-gc'],
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
    port,
    state: () => ask('state'),
    cpuUs: async () => (await ask<{ cpuUs: number }>('cpu')).cpuUs,
    call: (body) => post(connections[0]!, body),
    acknowledged: () => acknowledged,
    async load(bodies, count = CONNECTIONS) {
      const { cpuUs: before } = await ask<{ cpuUs: number }>('cpu');
      const queue = [...bodies].reverse();
      const worker = async (connection: Connection): Promise<void> => {
        for (let body = queue.pop(); body !== undefined; body = queue.pop()) await post(connection, body);
      };
      // Waits for all of them even if one fails: otherwise a late answer would be read as that of the next request.
      const ended = await Promise.allSettled(connections.slice(0, count).map(worker));
      for (const end of ended) if (end.status === 'rejected') throw end.reason as Error;
      return (await ask<{ cpuUs: number }>('cpu')).cpuUs - before;
    },
    stop() {
      for (const connection of connections) connection.close();
      child.disconnect();
    },
  };
}

/** Throws unless the server recovers signatures with the native library: anything else measures another program. */
export function checkBackend({ backend }: Pick<Server, 'backend'>): void {
  if (backend !== 'native') throw new Error(`signatures are recovered by ${backend}, not by the native library`);
}

/** Throws unless each acknowledged action has its stored row and there are no other rows. */
export async function checkStored(server: Server): Promise<void> {
  const { rows } = await server.state();
  if (rows !== server.acknowledged()) throw new Error(`${server.acknowledged()} acknowledged, but ${rows} rows stored`);
}
