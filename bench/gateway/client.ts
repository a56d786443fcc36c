import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Sends one body and resolves with the answer's, once all of it has come. Rejects unless the status is 200. */
export interface Connection {
  post(body: string): Promise<string>;
  close(): void;
}

const BLANK_LINE = '\r\n\r\n';

/**
 * A keep-alive connection that does as little as possible: it sends each request as one buffer and reads answers by their length. A client
 * with a framework would take as much CPU time as the server, on a machine that both share.
 */
export async function openConnection(port: number): Promise<Connection> {
  const socket = await connected(port);
  let received = '';
  let waiting: { resolve: (body: string) => void; reject: (error: Error) => void } | null = null;

  function fail(error: Error): void {
    waiting?.reject(error);
    waiting = null;
  }

  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    received += chunk;
    const end = received.indexOf(BLANK_LINE);
    if (end < 0 || waiting === null) return;
    const head = received.slice(0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) return fail(new Error(`an answer without a length: ${head}`));
    const start = end + BLANK_LINE.length;
    const stop = start + Number.parseInt(length, 10);
    if (received.length < stop) return;
    const body = received.slice(start, stop);
    received = received.slice(stop);
    const { resolve } = waiting;
    if (!head.startsWith('HTTP/1.1 200 ')) return fail(new Error(`${head.slice(0, 40)}: ${body.slice(0, 200)}`));
    waiting = null;
    resolve(body);
  });
  socket.on('error', fail);
  socket.on('close', () => fail(new Error('the server closed the connection')));

  return {
    post(body) {
      const head = `POST /exchange HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(`${head}${BLANK_LINE}${body}`, 'latin1');
      });
    },
    close: () => socket.destroy(),
  };
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });
}
