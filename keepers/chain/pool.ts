import type { Logger } from 'pino';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { RpcResponseError, RpcUnavailableError, createRpc, type Rpc, type RpcRequest } from './rpc.js';

/** One endpoint as it was last seen. */
export interface EndpointHealth {
  name: string;
  healthy: boolean;
  /** Newest block that it answered, null before the first answer. */
  head: number | null;
  failures: number;
  /** Why it is not healthy, null when it is. */
  problem: string | null;
}

/**
 * Several endpoints of one chain as one. Requests go to the first healthy one in the order configured, and on to the next when it
 * does not answer. An endpoint is unhealthy for a while after a failure, longer each time, and while it lags behind the others.
 */
export interface RpcPool extends Rpc {
  /** Every endpoint by itself, for questions that a majority decides. */
  readonly endpoints: readonly Rpc[];
  /**
   * The endpoints by themselves, in the order in which a request would try them now: healthy ones first. Those of another chain are left
   * out, so there may be none. For questions of which it matters who answers them.
   */
  ranked(): readonly Rpc[];
  /** Asks all endpoints for their heads, at most once per probe interval. Never rejects. */
  probe(): Promise<void>;
  /**
   * Counts a fault that an endpoint did not report itself, such as an answer of another history: of one of `endpoints`, or of the one in
   * use.
   */
  penalize(problem: string, endpoint?: Rpc | null): void;
  health(): EndpointHealth[];
}

export interface PoolOptions {
  nowMs(): number;
  logger: Logger;
  /** Endpoints of another chain are never used. Unchecked when absent. */
  chainId?: number;
  /** Makes the client of one URL; tests put faults here. */
  connect?(url: string): Rpc;
}

const PROBE_INTERVAL_MS = 5_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** An endpoint this many blocks behind the furthest one is passed over. */
const MAX_LAG_BLOCKS = 2;

interface Endpoint {
  rpc: Rpc;
  failures: number;
  pausedUntilMs: number;
  head: number | null;
  problem: string | null;
  /** Null until the endpoint has said which chain it serves. */
  rightChain: boolean | null;
}

/** A pool over at least one URL. */
export function createRpcPool(urls: readonly string[], options: PoolOptions): RpcPool {
  const { logger, nowMs, connect = createRpc } = options;
  const endpoints = urls.map((url): Endpoint => ({
    rpc: connect(url),
    failures: 0,
    pausedUntilMs: 0,
    head: null,
    problem: null,
    rightChain: null,
  }));
  const first = endpoints[0];
  if (first === undefined) throw new RangeError('an RPC pool needs at least one endpoint');
  let inUse = first;
  let probedMs = Number.NEGATIVE_INFINITY;

  const furthest = (): number => Math.max(0, ...endpoints.map((one) => one.head ?? 0));
  const lags = (one: Endpoint): boolean => one.head !== null && furthest() - one.head > MAX_LAG_BLOCKS;
  const isHealthy = (one: Endpoint): boolean => one.rightChain !== false && one.pausedUntilMs <= nowMs() && !lags(one);

  /** Healthy ones first, in the order configured; then those that are only paused or lag, as a last resort. */
  function candidates(): Endpoint[] {
    const usable = endpoints.filter((one) => one.rightChain !== false);
    return [...usable.filter(isHealthy), ...usable.filter((one) => !isHealthy(one))];
  }

  function fail(one: Endpoint, problem: string): void {
    one.failures += 1;
    one.problem = problem;
    one.pausedUntilMs = nowMs() + Math.min(FIRST_PAUSE_MS * 2 ** (one.failures - 1), LONGEST_PAUSE_MS);
    if (endpoints.length > 1)
      logger.warn({ rpc: one.rpc.name, failures: one.failures, problem }, 'an RPC endpoint failed');
  }

  function succeed(one: Endpoint): void {
    one.failures = 0;
    one.pausedUntilMs = 0;
    one.problem = null;
    if (inUse !== one) logger.info({ rpc: one.rpc.name }, 'using another RPC endpoint');
    inUse = one;
  }

  /** An answer with an error is an answer: only silence sends a request on to the next endpoint. */
  async function ask<T>(request: (rpc: Rpc) => Promise<T>): Promise<T> {
    let last: unknown = new RpcUnavailableError('no RPC endpoint serves the configured chain');
    for (const one of candidates()) {
      try {
        const answer = await request(one.rpc);
        succeed(one);
        return answer;
      } catch (error) {
        if (error instanceof RpcResponseError) {
          succeed(one);
          throw error;
        }
        fail(one, describe(error));
        last = error;
      }
    }
    throw last;
  }

  async function probeOne(one: Endpoint): Promise<void> {
    try {
      if (one.rightChain === null && options.chainId !== undefined) {
        const chainId = toSafeInt(BigInt((await one.rpc.call('eth_chainId')) as Hex));
        one.rightChain = chainId === options.chainId;
        if (!one.rightChain) {
          one.problem = `serves chain ${chainId}, not ${options.chainId}`;
          logger.error(
            { rpc: one.rpc.name, chainId, expected: options.chainId },
            'an RPC endpoint serves another chain',
          );
          return;
        }
      }
      one.head = toSafeInt(BigInt((await one.rpc.call('eth_blockNumber')) as Hex));
    } catch (error) {
      fail(one, describe(error));
    }
  }

  return {
    get name() {
      return inUse.rpc.name;
    },
    endpoints: endpoints.map((one) => one.rpc),
    call: (method, params = []) => ask((rpc) => rpc.call(method, params)),
    batch: (requests: readonly RpcRequest[]) => ask((rpc) => rpc.batch(requests)),
    async probe() {
      if (nowMs() - probedMs < PROBE_INTERVAL_MS) return;
      probedMs = nowMs();
      // An endpoint in its pause is probed, too: its answer says nothing about what failed, so the pause stays.
      await Promise.all(endpoints.filter((one) => one.rightChain !== false).map(probeOne));
    },
    ranked: () => candidates().map(({ rpc }) => rpc),
    penalize: (problem, endpoint = null) => fail(endpoints.find(({ rpc }) => rpc === endpoint) ?? inUse, problem),
    health: () =>
      endpoints.map((one) => ({
        name: one.rpc.name,
        healthy: isHealthy(one),
        head: one.head,
        failures: one.failures,
        problem: one.problem ?? (lags(one) ? `${furthest() - (one.head ?? 0)} blocks behind` : null),
      })),
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
