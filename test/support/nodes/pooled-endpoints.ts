/** Endpoints of a pool that are down, late, behind or of another chain when a test says so. */
import { pino } from 'pino';
import type { Hex } from '../../../core/types.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import { RpcResponseError, RpcUnavailableError, toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';

/** An endpoint that answers what the test says. */
interface FakeEndpoint {
  head: number;
  chainId: number;
  down: boolean;
  /** Hash of every block; null for an endpoint that lacks it. */
  hash: Hex | null;
  asked: number;
  /** What it answers to every other question. */
  refusal?: RpcResponseError;
  /** What its answers take, by the pool's clock. */
  lateMs?: number;
  /** What its answers to probes take. */
  probeLateMs?: number;
  /** What none of its answers comes before. */
  silentUntil?: Promise<void>;
}

export const HASH_A: Hex = `0x${'aa'.repeat(32)}`;

/** Within a `describe`: endpoints and a clock of its own for each test. */
export function pooledEndpoints() {
  let endpoints: FakeEndpoint[];
  let nowMs: number;

  function connect(url: string): Rpc {
    const one = endpoints[Number(url)]!;
    async function call(method: string, params: unknown[] = []): Promise<unknown> {
      one.asked += 1;
      if (method === 'which') nowMs += one.lateMs ?? 0;
      if (method === 'eth_blockNumber') nowMs += one.probeLateMs ?? 0;
      await one.silentUntil;
      if (one.down) throw new RpcUnavailableError('down');
      if (method === 'eth_chainId') return toQuantity(one.chainId);
      if (method === 'eth_blockNumber') return toQuantity(one.head);
      if (method === 'eth_getBlockByNumber') {
        if (one.hash === null) return null;
        const rest = { parentHash: HASH_A, timestamp: '0x0', logsBloom: `0x${'00'.repeat(256)}`, transactions: [] };
        return { number: params[0], hash: one.hash, ...rest };
      }
      if (one.refusal !== undefined) throw one.refusal;
      if (method === 'eth_call') throw new RpcResponseError(method, 3, 'execution reverted', '0x');
      if (method === 'fail') throw new RpcResponseError(method, -32_000, 'no', undefined);
      return url;
    }
    return {
      name: url,
      call,
      batch: (requests) => Promise.all(requests.map(({ method, params }) => call(method, params))),
    };
  }

  function pool(count: number): RpcPool {
    endpoints = Array.from({ length: count }, () => ({
      head: 100,
      chainId: 8453,
      down: false,
      hash: HASH_A,
      asked: 0,
    }));
    nowMs = 0;
    const urls = endpoints.map((_, i) => String(i));
    return createRpcPool(urls, { nowMs: () => nowMs, logger: pino({ level: 'silent' }), chainId: 8453, connect });
  }

  return {
    get endpoints() {
      return endpoints;
    },
    get nowMs() {
      return nowMs;
    },
    set nowMs(value) {
      nowMs = value;
    },
    pool,
  };
}
