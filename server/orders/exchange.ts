import type { Socket } from 'node:net';
import type { ExchangeReply } from './types.js';
import type { Gateway } from './engine.js';
import type { ConnectionHint } from './verify.js';

/** Where a request came from: its connection, and the client's address, which a proxy may have named. */
export interface RequestOrigin {
  socket: Socket;
  address: string;
}

/** Serves the body of POST /exchange. What a connection's client signs with is remembered for as long as it lives. */
export function exchangeHandler(gateway: Gateway): (body: unknown, origin: RequestOrigin) => Promise<ExchangeReply> {
  const hints = new WeakMap<Socket, ConnectionHint>();
  return async (body, { socket, address }) => {
    let hint = hints.get(socket);
    if (hint === undefined) {
      hint = {};
      hints.set(socket, hint);
    }
    hint.address = address;
    return (await gateway.submit(body, hint)).reply;
  };
}
