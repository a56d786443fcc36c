import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocketServer, type WebSocket } from 'ws';
import { STREAM_LIMITS } from '../../server/stream/limits.js';
import { createSendQueue } from '../../server/stream/send-queue.js';
import { ROUNDS, cpuUs, interleaved, type Row } from './measure.js';

const CONNECTIONS = 1_000;
const BROADCASTS = 20;

/** A text frame of the protocol, as it is on the wire: 126 says that two bytes of length follow. */
function framed(payload: Buffer): Buffer {
  const head = Buffer.from([0x81, 126, 0, 0]);
  head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, payload]);
}

/** The TCP connection of a WebSocket, which the library does not export. */
const rawOf = (socket: WebSocket): Socket => (socket as unknown as { _socket: Socket })._socket;

/** G9: one frame to a thousand connections through their send queues, against bare loops over the same sockets, also below the library. */
export async function measureFanout(): Promise<Row[]> {
  const server = createServer();
  const sockets: WebSocket[] = [];
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clients = fork(new URL('listeners.ts', import.meta.url), [
    String((server.address() as AddressInfo).port),
    String(CONNECTIONS),
  ]);
  try {
    while (sockets.length < CONNECTIONS) await delay(20);
    let seq = 0;
    let serialised = 0;
    const queues = sockets.map((socket) =>
      createSendQueue(socket, STREAM_LIMITS, Date.now, ({ reason }) => {
        throw new Error(reason);
      }),
    );
    const payload = { channel: 'orderUpdates', data: 'x'.repeat(1_450) };
    const frameOf = (): Buffer => {
      serialised += 1;
      return Buffer.from(JSON.stringify(payload));
    };
    const settled = async (): Promise<void> => {
      while (sockets.some((socket) => socket.bufferedAmount > 0)) await delay(1);
    };
    const broadcasting = (broadcast: (frame: Buffer) => void) => () =>
      cpuUs(async () => {
        for (let count = 0; count < BROADCASTS; count += 1) {
          broadcast(frameOf());
          await settled();
        }
      });
    const us = await interleaved({
      raw: broadcasting((frame) => {
        const bytes = framed(frame);
        sockets.forEach((socket) => rawOf(socket).write(bytes));
      }),
      bare: broadcasting((frame) => sockets.forEach((socket) => socket.send(frame, { binary: false }))),
      outbox: broadcasting((frame) => {
        const event = { frame, seq: (seq += 1), timeMs: Date.now() };
        queues.forEach((queue) => queue.event(event));
      }),
    });
    if (serialised !== 3 * (ROUNDS + 1) * BROADCASTS) throw new Error(`serialised ${serialised} times`);
    return [
      {
        goal: 'G9',
        what: 'fan-out to 1,000 sockets / bare send loop',
        value: us.bare / us.outbox,
        unit: 'x',
        bound: { atLeast: 0.9 },
      },
      {
        goal: 'G9',
        what: 'fan-out to 1,000 sockets / bare loop of raw writes',
        value: us.raw / us.outbox,
        unit: 'x',
        bound: { atLeast: 0.75 },
      },
    ];
  } finally {
    clients.kill();
    for (const socket of sockets) socket.terminate();
    server.close();
  }
}
