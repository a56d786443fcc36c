import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { isFailedCall } from '../../liquidity/eth.js';
import type { Vote } from './rpc.js';
import {
  RpcContradictionError,
  RpcResponseError,
  RpcUnavailableError,
  createRpc,
  type Rpc,
  type RpcRequest,
} from './rpc.js';

/** One endpoint as it was last seen. */
export interface EndpointHealth {
  name: string;
  healthy: boolean;
  /** Newest block that it answered, null before the first answer. */
  head: number | null;
  /** Requests in a row that it did not answer, and answers in a row that could not be true. */
  failures: number;
  /** Why it is not healthy, null when it is. */
  problem: string | null;
  /** Since the start: requests without an answer, answers that could not be true, and answers of another chain. */
  counts: EndpointCounts;
}

interface EndpointCounts {
  silent: number;
  contradiction: number;
  wrongChain: number;
}

/**
 * Several endpoints of one chain as one. Requests go to the first healthy one in the order configured, and on to the next when it
 * does not answer. An endpoint is unhealthy for a while after a failure, longer each time, and while it lags behind the others. None is
 * asked anything before it has said that it serves the configured chain; it says so again every minute, and after each failure.
 */
export interface RpcPool extends Rpc {
  /** Every endpoint of the chain by itself, for questions that a majority decides. */
  readonly endpoints: readonly Rpc[];
  /**
   * Runs work whose answers must be those of one endpoint. When that one does not answer, or its answers do not fit together, exactly it is
   * penalised and the work runs again on the next one; the last error is thrown once all were tried. So it does where the work ends with an error that the
   * endpoint answered, which is penalised if another one answers something else; a call that fails in a contract ends it. Reads
   * only: what the work did before it failed is done again.
   */
  attempt<T>(work: (rpc: Rpc) => Promise<T>): Promise<T>;
  /**
   * The endpoints by themselves, in the order in which a request would try them now: healthy ones first. Those of another chain are left
   * out, so there may be none. For questions of which it matters who answers them.
   */
  ranked(): readonly Rpc[];
  /**
   * Asks each endpoint that is not resting by itself, all at once. Whoever answers an error, or not soon after the others, has no vote; the
   * last error is thrown when nobody has one. The endpoint in use comes first. What takes `enough` votes, one by default, is asked of those
   * that rest, too, where fewer are awake, and nobody is given up before as many have voted.
   */
  survey<T>(ask: (rpc: Rpc) => Promise<T>, enough?: number): Promise<Vote<T>[]>;
  /** Asks all endpoints for their heads, at most once per probe interval. Never rejects. */
  probe(): Promise<void>;
  /**
   * Counts a fault that an endpoint did not report itself, such as an answer of another history. Without the endpoint, a client of `endpoints`
   * or the one that `attempt` gave, it is the one that answered last.
   */
  penalize(problem: string, endpoint?: Rpc | null): void;
  health(): EndpointHealth[];
  /** The ids of the chains that endpoints serve instead of the configured one; empty as soon as one serves that, or does not say. */
  otherChains(): readonly number[];
}

interface PoolOptions {
  /** For intervals only; monotonic, so that a step of the wall clock neither prolongs nor ends a pause. */
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
/** Of an endpoint whose answer could not be true. */
const FIRST_CONVICTION_MS = 1_000;
const LONGEST_CONVICTION_MS = 60_000;
/** An endpoint this many blocks behind the others is passed over. */
const MAX_LAG_BLOCKS = 2;
/** A head that has not moved for so long does, too, while any other is further. */
const STUCK_MS = 10_000;
/** How long an endpoint is believed to serve the chain that it named. */
const CHAIN_CHECK_MS = 60_000;
/** How long a survey waits for the others once one has answered. */
const PATIENCE_MS = 1_000;

interface Endpoint {
  /** Asks for nothing unless the endpoint serves the configured chain. */
  rpc: Rpc;
  raw: Rpc;
  failures: number;
  pausedUntilMs: number;
  convictions: number;
  convictedUntilMs: number;
  head: number | null;
  headMovedMs: number;
  problem: string | null;
  /** Null until the endpoint has said which chain it serves. */
  servedChain: number | null;
  chainCheckedMs: number;
  checking: Promise<void> | null;
  counts: EndpointCounts;
}

/** A pool over at least one URL. */
export function createRpcPool(urls: readonly string[], options: PoolOptions): RpcPool {
  const { logger, nowMs, chainId: expected, connect = createRpc } = options;
  const endpoints = urls.map((url) => newEndpoint(connect(url)));
  const first = endpoints[0];
  if (first === undefined) throw new RangeError('an RPC pool needs at least one endpoint');
  let inUse = first;
  let probedMs = Number.NEGATIVE_INFINITY;

  function newEndpoint(raw: Rpc): Endpoint {
    const one: Endpoint = {
      raw,
      rpc: {
        name: raw.name,
        call: (method, params) => onRightChain(one, () => raw.call(method, params)),
        batch: (requests) => onRightChain(one, () => raw.batch(requests)),
      },
      failures: 0,
      pausedUntilMs: 0,
      convictions: 0,
      convictedUntilMs: 0,
      head: null,
      headMovedMs: Number.NEGATIVE_INFINITY,
      problem: null,
      servedChain: null,
      chainCheckedMs: Number.NEGATIVE_INFINITY,
      checking: null,
      counts: { silent: 0, contradiction: 0, wrongChain: 0 },
    };
    return one;
  }

  const isOfOtherChain = (one: Endpoint): boolean =>
    expected !== undefined && one.servedChain !== null && one.servedChain !== expected;
  const rests = (one: Endpoint): boolean => one.pausedUntilMs > nowMs() || one.convictedUntilMs > nowMs();
  const isHealthy = (one: Endpoint): boolean => !isOfOtherChain(one) && !rests(one) && blocksBehind(one) === 0;

  /**
   * By how much an endpoint lags too far behind the others, else 0. One that claims a head far ahead is no reason to leave the others, unless
   * theirs stand still: with three or more, the head that most of them have reached counts.
   */
  function blocksBehind(one: Endpoint): number {
    if (one.head === null) return 0;
    const heads = endpoints
      .filter((other) => !isOfOtherChain(other) && !rests(other))
      .flatMap(({ head }) => head ?? [])
      .sort((a, b) => b - a);
    const furthest = heads[0] ?? one.head;
    const isStuck = nowMs() - one.headMovedMs >= STUCK_MS;
    const most = heads.length < 3 || isStuck ? furthest : heads[Math.floor(heads.length / 2)]!;
    return most - one.head > MAX_LAG_BLOCKS ? most - one.head : 0;
  }

  /** Healthy ones first, in the order configured; then those that are only paused or lag, as a last resort. */
  function candidates(): Endpoint[] {
    // One of another chain is looked at again after a while: it may have been repaired.
    const usable = endpoints.filter((one) => !isOfOtherChain(one) || isCheckDue(one));
    return [...usable.filter(isHealthy), ...usable.filter((one) => !isHealthy(one))];
  }

  const isCheckDue = (one: Endpoint): boolean =>
    expected !== undefined && nowMs() - one.chainCheckedMs >= CHAIN_CHECK_MS;

  /** What is asked of an endpoint that served the chain a minute ago need not wait for its word; its answer does. */
  async function onRightChain<T>(one: Endpoint, request: () => Promise<T>): Promise<T> {
    if (expected === undefined) return request();
    if (one.servedChain !== expected) {
      if (isCheckDue(one)) await checkChain(one);
      if (isOfOtherChain(one)) throw otherChain(one);
      return request();
    }
    if (!isCheckDue(one)) return request();
    const [answer] = await Promise.all([request(), checkChain(one)]);
    if (isOfOtherChain(one)) throw otherChain(one);
    return answer;
  }

  function checkChain(one: Endpoint): Promise<void> {
    one.checking ??= readChain(one).finally(() => (one.checking = null));
    return one.checking;
  }

  async function readChain(one: Endpoint): Promise<void> {
    const served = chainIdOf(one.raw, await one.raw.call('eth_chainId').catch(asSilence));
    const before = one.servedChain;
    one.servedChain = served;
    one.chainCheckedMs = nowMs();
    if (served === expected) {
      if (before !== null && before !== served) logger.warn({ rpc: one.raw.name }, 'an RPC endpoint serves our chain');
      return;
    }
    one.counts.wrongChain += 1;
    one.problem = `serves chain ${served}, not ${expected}`;
    one.head = null;
    if (before !== served)
      logger.error({ rpc: one.raw.name, chainId: served, expected }, 'an RPC endpoint serves another chain');
  }

  const otherChain = (one: Endpoint): RpcUnavailableError =>
    new RpcUnavailableError(`${one.raw.name} serves chain ${one.servedChain}, not ${expected}`);

  function fail(one: Endpoint, problem: string): void {
    // That it serves another chain is counted where it is seen.
    if (isOfOtherChain(one)) return;
    one.failures += 1;
    one.counts.silent += 1;
    one.problem = problem;
    one.pausedUntilMs = nowMs() + Math.min(FIRST_PAUSE_MS * 2 ** (one.failures - 1), LONGEST_PAUSE_MS);
    // Whatever answers next at this address may be another node.
    one.chainCheckedMs = Number.NEGATIVE_INFINITY;
    if (endpoints.length > 1)
      logger.warn({ rpc: one.raw.name, failures: one.failures, problem }, 'an RPC endpoint failed');
  }

  /** Only the whole of a later attempt takes this back: an endpoint that lies answers most requests. */
  function convict(one: Endpoint, problem: string): void {
    one.convictions += 1;
    one.counts.contradiction += 1;
    one.problem = problem;
    one.convictedUntilMs = nowMs() + Math.min(FIRST_CONVICTION_MS * 2 ** (one.convictions - 1), LONGEST_CONVICTION_MS);
    // Its head is no measure for others until it was asked again.
    one.head = null;
    one.chainCheckedMs = Number.NEGATIVE_INFINITY;
    logger.warn(
      { rpc: one.raw.name, convictions: one.convictions, problem },
      'an RPC endpoint answered what can not be true',
    );
  }

  function succeed(one: Endpoint): void {
    one.failures = 0;
    one.pausedUntilMs = 0;
    if (one.convictedUntilMs <= nowMs()) one.problem = null;
    if (inUse !== one) logger.info({ rpc: one.raw.name }, 'using another RPC endpoint');
    inUse = one;
  }

  const endpointOf = (rpc: Rpc | null): Endpoint | undefined => endpoints.find((one) => one.rpc === rpc);

  /** Who refused what another one answered is passed over; where all refuse, it is the question. */
  const failRefused = (refused: ReadonlyMap<Endpoint, RpcResponseError>): void =>
    refused.forEach((error, one) => fail(one, error.message));

  /** An answer with an error is an answer: silence sends a request on to the next endpoint, and so does a node that can't or won't answer. */
  async function ask<T>(request: (rpc: Rpc) => Promise<T>): Promise<T> {
    let last: unknown = new RpcUnavailableError('no RPC endpoint serves the configured chain');
    const refused = new Map<Endpoint, RpcResponseError>();
    for (const one of candidates()) {
      try {
        const answer = await request(one.rpc);
        succeed(one);
        failRefused(refused);
        return answer;
      } catch (error) {
        if (!(error instanceof RpcResponseError)) fail(one, describe(error));
        else if (isRefusal(error)) refused.set(one, error);
        else {
          succeed(one);
          failRefused(refused);
          throw error;
        }
        last = error;
      }
    }
    throw [...refused.values()].at(0) ?? last;
  }

  async function attempt<T>(work: (rpc: Rpc) => Promise<T>): Promise<T> {
    if (endpoints.length > 1) void probe();
    let last: unknown = new RpcUnavailableError('no RPC endpoint serves the configured chain');
    const tried = new Set<Endpoint>();
    const refused = new Map<Endpoint, RpcResponseError>();
    // One that was not at fault, because another one was, is asked again, but not for ever.
    for (let left = 2 * endpoints.length; left > 0; left--) {
      const one = candidates().find((candidate) => !tried.has(candidate));
      if (one === undefined) break;
      try {
        const answer = await work(one.rpc);
        succeed(one);
        if (one.convictedUntilMs <= nowMs()) one.convictions = 0;
        failRefused(refused);
        return answer;
      } catch (thrown) {
        const error = isNonsense(thrown)
          ? new RpcContradictionError(`${one.raw.name} answered nonsense: ${describe(thrown)}`, null, thrown)
          : thrown;
        if (error instanceof RpcResponseError && !isFailedCall(error)) {
          refused.set(one, error);
          tried.add(one);
          last = error;
          continue;
        }
        if (!(error instanceof RpcUnavailableError)) {
          if (error instanceof RpcResponseError) succeed(one);
          throw error;
        }
        last = error;
        const atFault = (error instanceof RpcContradictionError ? endpointOf(error.endpoint) : undefined) ?? one;
        if (atFault === one) tried.add(one);
        if (error instanceof RpcContradictionError) convict(atFault, error.message);
        else fail(one, describe(error));
      }
    }
    throw last;
  }

  async function survey<T>(question: (rpc: Rpc) => Promise<T>, enough = 1): Promise<Vote<T>[]> {
    const usable = candidates();
    const awake = usable.filter((one) => !rests(one));
    const votes = new Map<Endpoint, T>();
    let last: unknown = new RpcUnavailableError('no RPC endpoint serves the configured chain');
    const heard = Promise.withResolvers<void>();
    const asked = (awake.length >= enough ? awake : usable).map(async (one) => {
      try {
        votes.set(one, await question(one.rpc));
        if (votes.size === enough) heard.resolve();
      } catch (error) {
        last = error;
        if (!(error instanceof RpcResponseError)) fail(one, describe(error));
      }
    });
    const over = new AbortController();
    const all = Promise.all(asked).finally(() => over.abort());
    // Once enough have answered, the others are not waited for much longer.
    const soon = heard.promise.then(() =>
      delay(PATIENCE_MS, undefined, { signal: over.signal }).catch(() => undefined),
    );
    await Promise.race([all, soon]);
    if (votes.size === 0) await all;
    if (votes.size === 0) throw last;
    return [...votes]
      .sort(([a], [b]) => usable.indexOf(a) - usable.indexOf(b))
      .map(([one, answer]) => ({ endpoint: one.rpc, answer, convict: (problem) => convict(one, problem) }));
  }

  async function probeOne(one: Endpoint): Promise<void> {
    try {
      const head = toSafeInt(BigInt((await one.rpc.call('eth_blockNumber')) as Hex));
      if (head !== one.head) one.headMovedMs = nowMs();
      one.head = head;
    } catch (error) {
      fail(one, describe(error));
    }
  }

  async function probe(): Promise<void> {
    if (nowMs() - probedMs < PROBE_INTERVAL_MS) return;
    probedMs = nowMs();
    // An endpoint in its pause is probed, too: its answer says nothing about what failed, so the pause stays.
    await Promise.all(endpoints.filter((one) => !isOfOtherChain(one) || isCheckDue(one)).map(probeOne));
  }

  return {
    get name() {
      return inUse.raw.name;
    },
    get endpoints() {
      return endpoints.filter((one) => !isOfOtherChain(one)).map((one) => one.rpc);
    },
    call: (method, params = []) => ask((rpc) => rpc.call(method, params)),
    batch: (requests: readonly RpcRequest[]) => ask((rpc) => rpc.batch(requests)),
    ranked: () => candidates().map(({ rpc }) => rpc),
    attempt,
    survey,
    probe,
    penalize: (problem, endpoint) => convict(endpointOf(endpoint ?? null) ?? inUse, problem),
    health: () =>
      endpoints.map((one) => ({
        name: one.raw.name,
        healthy: isHealthy(one),
        head: one.head,
        failures: one.failures + one.convictions,
        problem: one.problem ?? (blocksBehind(one) > 0 ? `${blocksBehind(one)} blocks behind` : null),
        counts: { ...one.counts },
      })),
    otherChains: () =>
      endpoints.every(isOfOtherChain) ? endpoints.flatMap(({ servedChain }) => servedChain ?? []) : [],
  };
}

/** What nodes and the services in front of them answer to any question: limits, missing rights, methods that are switched off, faults of their own. */
const REFUSAL_CODES: readonly number[] = [-32_601, -32_603, -32_002, -32_004, -32_005, 401, 403, 429];
const REFUSAL =
  /rate.?limit|request limit|limit exceeded|limit reached|too many requests|quota|capacity|unauthori[sz]ed|forbidden|api key|txpool is full/i;

/** An error that says nothing of what was asked, so that another endpoint may answer it. */
const isRefusal = (error: RpcResponseError): boolean =>
  !isFailedCall(error) && (REFUSAL_CODES.includes(error.code) || REFUSAL.test(error.message));

/** Throws RpcUnavailableError for an answer that is no chain id. */
function chainIdOf(rpc: Rpc, answer: unknown): number {
  try {
    return toSafeInt(BigInt(answer as Hex));
  } catch (error) {
    throw new RpcUnavailableError(`${rpc.name} does not say which chain it serves`, error);
  }
}

/** An endpoint that refuses to name its chain can't be used; no refusal of it is an answer to what was asked. */
function asSilence(error: unknown): never {
  if (error instanceof RpcUnavailableError) throw error;
  throw new RpcUnavailableError(`it does not say which chain it serves: ${describe(error)}`, error);
}

/** What reading an answer of the wrong shape ends with; the codes are those of the ABI decoder. */
const isNonsense = (error: unknown): boolean =>
  error instanceof TypeError ||
  error instanceof RangeError ||
  error instanceof SyntaxError ||
  ['BAD_DATA', 'BUFFER_OVERRUN'].includes((error as { code?: string }).code ?? '');

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
