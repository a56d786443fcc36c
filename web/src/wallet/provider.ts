/** What a wallet in the browser offers (EIP-1193), and the same over an endpoint of the chain. */
export interface Provider {
  request(ask: { method: string; params?: readonly unknown[] }): Promise<unknown>;
  on?(event: string, listener: (value: never) => void): void;
  removeListener?(event: string, listener: (value: never) => void): void;
}

const TIMEOUT_MS = 15_000;

/** JSON-RPC over HTTP. What the endpoint refuses is thrown as an Error with its `code` and `data`. */
export function createRpc(url: string, fetcher: typeof fetch = (...ask) => fetch(...ask)): Provider {
  let id = 0;
  return {
    async request({ method, params = [] }) {
      id += 1;
      const reply = await fetcher(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const body = (await reply.json()) as {
        result?: unknown;
        error?: { code?: number; message?: string; data?: unknown };
      };
      if (body.error === undefined) return body.result;
      const { code, message = 'the endpoint refused', data } = body.error;
      throw Object.assign(new Error(message), { code, data });
    },
  };
}
