import { createConnection } from 'node:net';
import type { Socket } from 'node:net';

const CONNECTIONS = 32;
const END_OF_HEAD = Buffer.from('\r\n\r\n');
/** The header as Koa writes it. It is searched in the bytes, since decoding each head to text would take longer than some answers. */
const LENGTH = Buffer.from('\r\nContent-Length: ');
const ZERO = 0x30;

export interface Request {
  path: string;
  /** 200 when left out. */
  status?: number;
  headers?: string;
  /** JSON to be posted; a GET without it. */
  body?: string;
}

/**
 * Asks for one path over kept connections, one request at a time on each. It reads no more of an answer than its status and length, so
 * that the server, not this client, is what takes the time. Anything but the expected status fails.
 */
export interface Client {
  /** Requests per second, for at least so many milliseconds. */
  rate(request: Request, forMs: number): Promise<number>;
  close(): void;
}

/** Connects to a port of this host. */
export async function connectClient(port: number): Promise<Client> {
  const sockets = await Promise.all(
    Array.from(
      { length: CONNECTIONS },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = createConnection(port, '127.0.0.1', () => resolve(socket));
          socket.setNoDelay(true);
          socket.once('error', reject);
        }),
    ),
  );
  return {
    async rate({ path, status = 200, headers = '', body }, forMs) {
      const expected = Buffer.from(`HTTP/1.1 ${status} `);
      const posted =
        body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
      const method = body === undefined ? 'GET' : 'POST';
      const head = `${method} ${path} HTTP/1.1\r\nhost: bench\r\n${posted}${headers}\r\n`;
      const request = Buffer.from(`${head}${body ?? ''}`);
      const startedMs = performance.now();
      let answered = 0;
      const again = (): boolean => {
        answered += 1;
        return performance.now() - startedMs < forMs;
      };
      await Promise.all(sockets.map((socket) => ask(socket, request, expected, path, again)));
      return (answered * 1_000) / (performance.now() - startedMs);
    },
    close: () => sockets.forEach((socket) => socket.destroy()),
  };
}

/** The length that a head names; 0 for one without, such as that of a 304. */
function lengthIn(head: Buffer, end: number): number {
  const at = head.indexOf(LENGTH);
  let length = 0;
  if (at < 0 || at >= end) return length;
  for (let i = at + LENGTH.length; i < end && head[i] !== END_OF_HEAD[0]; i += 1)
    length = 10 * length + head[i]! - ZERO;
  return length;
}

/** Repeats a request on one connection for as long as `again` says so after an answer. */
function ask(socket: Socket, request: Buffer, expected: Buffer, path: string, again: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let head: Buffer = Buffer.alloc(0);
    /** Bytes of the body that are still to come; null while the head is. */
    let left: number | null = null;

    function end(error?: Error): void {
      socket.off('data', onData);
      socket.off('close', onClose);
      if (error === undefined) resolve();
      else reject(error);
    }

    const onClose = (): void => end(new Error(`${path}: the connection was closed`));

    function onData(data: Buffer): void {
      let rest = data;
      if (left === null) {
        head = head.length === 0 ? data : Buffer.concat([head, data]);
        const at = head.indexOf(END_OF_HEAD);
        if (at < 0) return;
        if (head.compare(expected, 0, expected.length, 0, expected.length) !== 0)
          return end(new Error(`${path}: ${head.toString('latin1', 0, at).split('\r\n', 1)[0]}`));
        left = lengthIn(head, at);
        rest = head.subarray(at + END_OF_HEAD.length);
      }
      left -= rest.length;
      if (left > 0) return;
      head = Buffer.alloc(0);
      left = null;
      if (again()) socket.write(request);
      else end();
    }

    socket.on('data', onData);
    socket.once('close', onClose);
    socket.write(request);
  });
}
