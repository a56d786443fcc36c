import type { Socket } from 'node:net';
import type { ExchangeReply } from './types.js';
import type { Gateway } from './engine.js';
import type { ConnectionHint } from './verify.js';

/** Serves the body of POST /exchange. What a connection's client signs with is remembered for as long as it lives. */
export function exchangeHandler(gateway: Gateway): (body: unknown, socket: Socket) => Promise<ExchangeReply> {
  const hints = new WeakMap<Socket, ConnectionHint>();
  return async (body, socket) => {
    const hint = hints.get(socket) ?? { address: socket.remoteAddress };
    hints.set(socket, hint);
    return (await gateway.submit(body, hint)).reply;
  };
}
