import { CurvebookError } from '../../../sdk/src/index.js';

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

/** Throws CurvebookError `WRONG_CHAIN` unless the provider is on this chain. */
export async function requireChain(provider: Provider, wanted: number): Promise<void> {
  const chainId = BigInt((await provider.request({ method: 'eth_chainId' })) as string);
  if (chainId === BigInt(wanted)) return;
  const text = `the wallet or endpoint is on chain ${chainId}, this deployment on ${wanted}`;
  throw new CurvebookError('WRONG_CHAIN', text, { remedy: 'switch the chain in the wallet' });
}

/** What a job reads of one chain; refused where the provider was on another one before or after it: a wallet may move while it is asked. */
export async function onChain<T>(provider: Provider, chainId: number, job: () => Promise<T>): Promise<T> {
  await requireChain(provider, chainId);
  const result = await job();
  await requireChain(provider, chainId);
  return result;
}

/** What says where a deployment is, and who can be asked there. */
interface Place {
  chain_id: number;
  rpc_url: string | null;
}

/** A wallet that is read on the chain of the deployment alone: while it is on another one, the server's endpoint answers, or `WRONG_CHAIN` is thrown. */
export function readsOf(
  wallet: Provider,
  { chain_id: chainId, rpc_url: url }: Place,
  fetcher?: typeof fetch,
): Provider {
  const rpc = url === null ? null : createRpc(url, fetcher);
  return {
    async request(ask) {
      try {
        return await onChain(wallet, chainId, () => wallet.request(ask));
      } catch (error) {
        if (rpc === null || !(error instanceof CurvebookError)) throw error;
        return rpc.request(ask);
      }
    },
  };
}

/**
 * Who is asked what the chain of the deployment holds: a wallet that is there, else the endpoint that the server names, else nobody (null). What two
 * different sources say is not the same fact: `source` tells them apart.
 */
export function chainOf(
  session: { name: string; provider: Provider; chainId: number | null } | null,
  { chain_id: chainId, rpc_url: url }: Place,
): { provider: Provider; source: string } | null {
  if (session?.chainId === chainId) return { provider: session.provider, source: `${chainId}/${session.name}` };
  return url === null ? null : { provider: createRpc(url), source: `${chainId}/${url}` };
}
