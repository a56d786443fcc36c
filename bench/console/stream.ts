/** A server in front of a sandbox: everything is the sandbox's, but that its book moves so often in a second. */
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

interface Level {
  px: string;
  sz: string;
  n: number;
}

interface BookFrame {
  channel: 'l2Book';
  data: { levels: [Level[], Level[]]; time: number };
}

interface FastStream {
  url: string;
  /** Frames of the book that were sent since the last call. */
  sent(): number;
  close(): Promise<void>;
}

/** A timer of Node's may come late: what is due by then is sent together, as a network does. */
const TICK_MS = 5;

/** Serves the sandbox at `upstream`, and to each connection that follows a book `perSec` frames of it a second, each other than the one before. */
export async function startFastStream(upstream: string, perSec: number): Promise<FastStream> {
  let count = 0;
  const server = createServer((asked, answer) => forward(upstream, asked, answer));
  const sockets = new WebSocketServer({ server, path: '/ws' });
  sockets.on('connection', (client) => {
    const inner = new WebSocket(`${upstream.replace('http', 'ws')}/ws`);
    const waiting: string[] = [];
    let book: BookFrame | null = null;
    let sentAtMs = performance.now();
    let no = 0;
    client.on('message', (bytes: Buffer) => {
      if (inner.readyState === WebSocket.OPEN) inner.send(bytes.toString());
      else waiting.push(bytes.toString());
    });
    inner.on('open', () => waiting.splice(0).forEach((text) => inner.send(text)));
    inner.on('message', (bytes: Buffer) => {
      const text = bytes.toString();
      if (text.startsWith('{"channel":"l2Book"')) book = JSON.parse(text) as BookFrame;
      client.send(text);
    });
    const timer = setInterval(() => {
      const nowMs = performance.now();
      for (const stepMs = 1_000 / perSec; nowMs - sentAtMs >= stepMs; sentAtMs += stepMs) {
        if (book === null) continue;
        client.send(JSON.stringify(moved(book, (no += 1))));
        count += 1;
      }
    }, TICK_MS);
    const end = (): void => {
      clearInterval(timer);
      inner.close();
      client.close();
    };
    client.on('close', end);
    inner.on('close', end);
    inner.on('error', end);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => {
      const now = count;
      count = 0;
      return now;
    },
    async close() {
      sockets.clients.forEach((client) => client.terminate());
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The book with other sizes at all prices, and one price more or less at the far end. */
function moved({ channel, data }: BookFrame, no: number): BookFrame {
  const levels = data.levels.map((side) =>
    side
      .slice(0, side.length - (no % 2))
      .map((level, i) => ({ ...level, sz: `${1 + ((no + i) % 9)}.${String((no * 7 + i) % 100).padStart(2, '0')}` })),
  ) as BookFrame['data']['levels'];
  return { channel, data: { ...data, levels, time: data.time + no } };
}

function forward(upstream: string, asked: IncomingMessage, answer: ServerResponse): void {
  const headers = { ...asked.headers, host: new URL(upstream).host };
  const passed = request(`${upstream}${asked.url ?? '/'}`, { method: asked.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(answer);
  });
  passed.on('error', () => answer.destroy());
  asked.pipe(passed);
}
