/** A JSON-RPC proxy between a keeper and its node that fails in the ways in which nodes fail. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RpcRequestBody {
  id: number;
  method: string;
  params: unknown[];
}

/**
 * What to do with a request: pass it on, leave it unanswered, break the connection before or after it was passed on, answer an error, answer a given
 * value, or answer what a function makes of the node's answer.
 */
export type Fault =
  | 'pass'
  | 'hang'
  | 'reset'
  | 'lose'
  | { error: { code: number; message: string } }
  | { result: unknown }
  | { change(result: unknown): unknown };

export interface FaultProxy {
  url: string;
  /** Judges each request; null lets everything through. */
  fault: ((request: RpcRequestBody) => Fault) | null;
  /** Transactions that were passed on. */
  readonly sent: string[];
  /** How often each method was asked. */
  count(method: string): number;
  close(): Promise<void>;
}

/** Starts a proxy in front of `target` on a port of its own. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const sent: string[] = [];
  const counts = new Map<string, number>();
  const proxy: FaultProxy = {
    url: '',
    fault: null,
    sent,
    count: (method) => counts.get(method) ?? 0,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };

  async function answer(request: RpcRequestBody): Promise<unknown> {
    counts.set(request.method, (counts.get(request.method) ?? 0) + 1);
    const fault = proxy.fault?.(request) ?? 'pass';
    if (fault === 'hang' || fault === 'reset') throw new Refusal(fault);
    if (typeof fault === 'object' && !('change' in fault)) return { jsonrpc: '2.0', id: request.id, ...fault };
    if (request.method === 'eth_sendRawTransaction') sent.push(String(request.params[0]));
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(target, { method: 'POST', headers, body: JSON.stringify(request) });
    const reply = (await response.json()) as { result?: unknown };
    if (typeof fault === 'object' && reply.result !== undefined)
      return { ...reply, result: fault.change(reply.result) };
    if (fault === 'lose') throw new Refusal('reset');
    return reply;
  }

  const server = createServer((request, response) => {
    void readBody(request)
      .then(async (text) => {
        const body = JSON.parse(text) as RpcRequestBody | RpcRequestBody[];
        const reply = Array.isArray(body) ? await Promise.all(body.map(answer)) : await answer(body);
        response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
      })
      .catch((error: unknown) => {
        // The request was read completely, so it can't be aborted; its connection can.
        if (!(error instanceof Refusal && error.how === 'hang')) request.socket.destroy();
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}

class Refusal extends Error {
  constructor(readonly how: 'hang' | 'reset') {
    super(how);
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
