import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { isFailedCall } from '../../liquidity/eth.js';
import type { Vote } from './rpc.js';
import {
  RpcAnswerTooLargeError,
  RpcBusyError,
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
  /** Failures in a row: requests without an answer, and answers that could not be true. */
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
 * Several endpoints of one chain as one. Requests go to the first healthy one in the order configured, and on to the next when it does not
 * answer. An endpoint is unhealthy for a while after a failure, longer each time, and while it lags behind the others. No endpoint is used
 * before it has named the configured chain; that is checked again every minute, and after each failure.
 */
export interface RpcPool extends Rpc {
  /** Every endpoint of the chain by itself, for questions that a majority decides. */
  readonly endpoints: readonly Rpc[];
  /**
   * Runs work whose answers must be those of one endpoint. When that endpoint does not answer, or its answers do not fit together, it is
   * penalised and the work runs again on the next one; the last error is thrown once all were tried. The same happens when the endpoint
   * answers with an error; it is penalised if another one answers without. A call that reverts in a contract ends the work. For reads only,
   * because the work is repeated from its beginning.
   */
  attempt<T>(work: (rpc: Rpc) => Promise<T>): Promise<T>;
  /**
   * The endpoints by themselves, in the order in which a request would try them now: healthy ones first. Those of another chain are left
   * out, so there may be none. For questions where it matters which endpoint answers.
   */
  ranked(): readonly Rpc[];
  /**
   * Asks each endpoint that is not paused, all at once. An endpoint that answers an error, or too late after the others, has no vote; the
   * last error is thrown when there is no vote. The endpoint in use comes first. When fewer than `enough` endpoints (default one) are not
   * paused, or fewer of those answer, paused ones are asked, too. Late endpoints are waited for until there are `enough` votes, or with
   * `isPatient` false until there is one. With `awaitsPaused` false paused ones are not waited for as long, once all others have answered
   * and there is a vote: for questions that are asked again, where a vote that is missing decides nothing for good.
   */
  survey<T>(
    ask: (rpc: Rpc) => Promise<T>,
    enough?: number,
    isPatient?: boolean,
    awaitsPaused?: boolean,
  ): Promise<Vote<T>[]>;
  /**
   * Asks all endpoints for their heads, at most once per probe interval. Never rejects. Waits for all of them, or with `isPatient` false
   * not for late ones once one has answered.
   */
  probe(isPatient?: boolean): Promise<void>;
  /**
   * Counts a fault that the pool could not see itself, such as an answer of another history. `endpoint` is a client of `endpoints` or the
   * one passed by `attempt`; without it the endpoint that answered last is meant.
   */
  penalize(problem: string, endpoint?: Rpc | null): void;
  health(): EndpointHealth[];
  /**
   * Ids of the chains that endpoints serve instead of the configured one; empty if any endpoint serves the configured one or did not say.
   */
  otherChains(): readonly number[];
}

interface PoolOptions {
  /** For intervals only; monotonic, so that a step of the wall clock neither prolongs nor ends a pause. */
  nowMs(): number;
  logger: Logger;
  /** Endpoints of another chain are never used. Unchecked when absent. */
  chainId?: number;
  /** Makes the client of one URL; tests inject faults here. */
  connect?(url: string): Rpc;
}

const PROBE_INTERVAL_MS = 5_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** First pause of an endpoint whose answer could not be true. */
const FIRST_CONVICTION_MS = 1_000;
const LONGEST_CONVICTION_MS = 60_000;
/** An answer that takes this long is true and late: several in a row make a step older than the ledger may be. */
const SLOW_MS = 2_000;
/** How long whoever answers so is passed over, while another one does not. */
const FIRST_SLOW_PAUSE_MS = 10_000;
const LONGEST_SLOW_PAUSE_MS = 300_000;
/** An endpoint more than this many blocks behind the others is not used. */
const MAX_LAG_BLOCKS = 2;
/** Neither is one whose head has not moved for so long while another one is further. */
const STUCK_MS = 10_000;
/** How long the chain that an endpoint named is taken for granted. */
const CHAIN_CHECK_MS = 60_000;
/** How long a survey waits for the others once one has answered. */
const PATIENCE_MS = 1_000;

interface Endpoint {
  /** Client that sends nothing unless the endpoint serves the configured chain. */
  rpc: Rpc;
  raw: Rpc;
  failures: number;
  pausedUntilMs: number;
  convictions: number;
  convictedUntilMs: number;
  /** Late answers since the last step without any. */
  slowAnswers: number;
  slowUntilMs: number;
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
        call: (method, params) => onRightChain(one, () => timed(one, () => raw.call(method, params))),
        batch: (requests) => onRightChain(one, () => timed(one, () => raw.batch(requests))),
      },
      failures: 0,
      pausedUntilMs: 0,
      convictions: 0,
      convictedUntilMs: 0,
      slowAnswers: 0,
      slowUntilMs: 0,
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
  const isHealthy = (one: Endpoint): boolean =>
    !isOfOtherChain(one) && !rests(one) && blocksBehind(one) === 0 && !isSlow(one);
  const wasSlow = (one: Endpoint): boolean => one.slowUntilMs > nowMs();
  /** None is while all are: whatever is asked of them takes long, or this process does. */
  const isSlow = (one: Endpoint): boolean =>
    wasSlow(one) &&
    endpoints.some((other) => !isOfOtherChain(other) && !rests(other) && !wasSlow(other) && blocksBehind(other) === 0);

  /**
   * By how many blocks an endpoint lags too far behind the others, else 0. With three or more endpoints the head that most of them have
   * reached counts, so that one with an invented far head does not replace the others, unless their heads stand still.
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

  function lagOf(one: Endpoint): string | null {
    if (blocksBehind(one) > 0) return `${blocksBehind(one)} blocks behind`;
    return isSlow(one) ? 'answers late' : null;
  }

  /** Healthy ones first, in the order configured; then those that are only paused or lag, as a last resort. */
  function candidates(): Endpoint[] {
    // One of another chain is checked again after a while: its configuration may have been repaired.
    const usable = endpoints.filter((one) => !isOfOtherChain(one) || isCheckDue(one));
    return [...usable.filter(isHealthy), ...usable.filter((one) => !isHealthy(one))];
  }

  const isCheckDue = (one: Endpoint): boolean =>
    expected !== undefined && nowMs() - one.chainCheckedMs >= CHAIN_CHECK_MS;

  /** A request to an endpoint that served the chain a minute ago is sent at once; only its answer waits for the check. */
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

  async function timed<T>(one: Endpoint, request: () => Promise<T>): Promise<T> {
    const fromMs = nowMs();
    const said = await request();
    // At the end of a pause it counts once more: what is asked at the same time is late together.
    if (nowMs() - fromMs >= SLOW_MS && !wasSlow(one)) {
      one.slowAnswers += 1;
      const pauseMs = Math.min(FIRST_SLOW_PAUSE_MS * 2 ** (one.slowAnswers - 1), LONGEST_SLOW_PAUSE_MS);
      one.slowUntilMs = nowMs() + pauseMs;
      if (isSlow(one)) logger.warn({ rpc: one.raw.name, tookMs: nowMs() - fromMs }, 'an RPC endpoint answers late');
    }
    return said;
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

  /** The last failure of a request, or that no endpoint could be asked: an error takes as long to make as the rest of a request. */
  const failureOf = (last: unknown): unknown =>
    last ?? new RpcUnavailableError('no RPC endpoint serves the configured chain');

  const otherChain = (one: Endpoint): RpcUnavailableError =>
    new RpcUnavailableError(`${one.raw.name} serves chain ${one.servedChain}, not ${expected}`);

  function fail(one: Endpoint, problem: string, leastMs = 0): void {
    // Another chain is counted where it is detected.
    if (isOfOtherChain(one)) return;
    one.failures += 1;
    one.counts.silent += 1;
    one.problem = problem;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (one.failures - 1), LONGEST_PAUSE_MS);
    one.pausedUntilMs = nowMs() + Math.max(pauseMs, leastMs);
    // After a failure another node may answer at this address.
    one.chainCheckedMs = Number.NEGATIVE_INFINITY;
    if (endpoints.length > 1)
      logger.warn({ rpc: one.raw.name, failures: one.failures, problem }, 'an RPC endpoint failed');
  }

  /** Only a later complete attempt clears it, because a lying endpoint answers most requests correctly. */
  function convict(one: Endpoint, problem: string): void {
    one.convictions += 1;
    one.counts.contradiction += 1;
    one.problem = problem;
    one.convictedUntilMs = nowMs() + Math.min(FIRST_CONVICTION_MS * 2 ** (one.convictions - 1), LONGEST_CONVICTION_MS);
    // Its head is not compared with others until the next probe.
    one.head = null;
    one.chainCheckedMs = Number.NEGATIVE_INFINITY;
    logger.warn(
      { rpc: one.raw.name, convictions: one.convictions, problem },
      'an RPC endpoint answered what can not be true',
    );
  }

  /** Penalises an endpoint for silence, or for an answer that can't be true. */
  function blame(one: Endpoint, error: unknown): void {
    if (error instanceof RpcAnswerTooLargeError) convict(one, error.message);
    else fail(one, describe(error), error instanceof RpcBusyError ? error.waitMs : 0);
  }

  function succeed(one: Endpoint): void {
    one.failures = 0;
    one.pausedUntilMs = 0;
    if (one.convictedUntilMs <= nowMs()) one.problem = null;
    if (inUse !== one) logger.info({ rpc: one.raw.name }, 'using another RPC endpoint');
    inUse = one;
  }

  const endpointOf = (rpc: Rpc | null): Endpoint | undefined => endpoints.find((one) => one.rpc === rpc);

  /** Endpoints that refused what another one answered are penalised; if all refuse, the request is at fault. */
  const failRefused = (refused: ReadonlyMap<Endpoint, RpcResponseError>): void =>
    refused.forEach((error, one) => fail(one, error.message));

  /** An error answer is returned as the result, except for refusals: on those, and on silence, the request goes to the next endpoint. */
  async function ask<T>(request: (rpc: Rpc) => Promise<T>): Promise<T> {
    let last: unknown = null;
    const refused = new Map<Endpoint, RpcResponseError>();
    for (const one of candidates()) {
      try {
        const answer = await request(one.rpc);
        succeed(one);
        failRefused(refused);
        return answer;
      } catch (error) {
        if (!(error instanceof RpcResponseError)) blame(one, error);
        else if (isRefusal(error)) refused.set(one, error);
        else {
          succeed(one);
          failRefused(refused);
          throw error;
        }
        last = error;
      }
    }
    throw [...refused.values()].at(0) ?? failureOf(last);
  }

  async function attempt<T>(work: (rpc: Rpc) => Promise<T>): Promise<T> {
    if (endpoints.length > 1) void probe();
    let last: unknown = null;
    const tried = new Set<Endpoint>();
    const refused = new Map<Endpoint, RpcResponseError>();
    // An endpoint may be asked again when another one was at fault, but only a bounded number of times.
    for (let left = 2 * endpoints.length; left > 0; left--) {
      const one = candidates().find((candidate) => !tried.has(candidate));
      if (one === undefined) break;
      try {
        const answer = await work(one.rpc);
        succeed(one);
        if (one.convictedUntilMs <= nowMs()) one.convictions = 0;
        if (!wasSlow(one)) one.slowAnswers = 0;
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
        else blame(one, error);
      }
    }
    throw failureOf(last);
  }

  async function survey<T>(
    question: (rpc: Rpc) => Promise<T>,
    enough = 1,
    isPatient = true,
    awaitsPaused = true,
  ): Promise<Vote<T>[]> {
    const usable = candidates();
    const awake = usable.filter((one) => !rests(one));
    const votes = new Map<Endpoint, T>();
    let last: unknown = null;
    const heard = Promise.withResolvers<void>();
    let waking = awake.length;
    const askOne = async (one: Endpoint): Promise<void> => {
      try {
        votes.set(one, await question(one.rpc));
        if (votes.size === (isPatient ? enough : 1)) heard.resolve();
      } catch (error) {
        last = error;
        if (!(error instanceof RpcResponseError)) blame(one, error);
      }
      if (awake.includes(one)) waking -= 1;
      if (!awaitsPaused && waking === 0 && votes.size > 0) heard.resolve();
    };
    const first = awake.length >= enough ? awake : usable;
    const all = Promise.all(first.map(askOne)).then(async () => {
      // One that hangs must not leave the decision to one that lies.
      if (votes.size < enough) await Promise.all(usable.filter((one) => !first.includes(one)).map(askOne));
    });
    await withPatience(all, heard.promise);
    if (votes.size === 0) await all;
    if (votes.size === 0) throw failureOf(last);
    return [...votes]
      .sort(([a], [b]) => usable.indexOf(a) - usable.indexOf(b))
      .map(([one, answer]) => ({ endpoint: one.rpc, answer, convict: (problem) => convict(one, problem) }));
  }

  async function probeOne(one: Endpoint): Promise<boolean> {
    try {
      const head = toSafeInt(BigInt((await one.rpc.call('eth_blockNumber')) as Hex));
      if (head !== one.head) one.headMovedMs = nowMs();
      one.head = head;
      return true;
    } catch (error) {
      blame(one, error);
      return false;
    }
  }

  async function probe(isPatient = true): Promise<void> {
    if (nowMs() - probedMs < PROBE_INTERVAL_MS) return;
    probedMs = nowMs();
    // A paused endpoint is probed, too; an answer does not end its pause, because it does not show that the fault is gone.
    const asked = endpoints.filter((one) => !isOfOtherChain(one) || isCheckDue(one)).map(probeOne);
    const heard = Promise.withResolvers<void>();
    for (const one of asked) void one.then((answered) => answered && heard.resolve());
    await withPatience(Promise.all(asked), isPatient ? null : heard.promise);
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
        problem: one.problem ?? lagOf(one),
        counts: { ...one.counts },
      })),
    otherChains: () =>
      endpoints.every(isOfOtherChain) ? endpoints.flatMap(({ servedChain }) => servedChain ?? []) : [],
  };
}

/** Waits for `all`, or no longer than PATIENCE_MS from when `enough` resolves. */
async function withPatience(all: Promise<unknown>, enough: Promise<void> | null): Promise<void> {
  const over = new AbortController();
  const done = all.finally(() => over.abort());
  const soon = enough?.then(() => delay(PATIENCE_MS, undefined, { signal: over.signal }).catch(() => undefined));
  await Promise.race([done, ...(soon === undefined ? [] : [soon])]);
}

/** Codes that nodes and services answer to any request: limits, missing rights, disabled methods, internal errors. */
const REFUSAL_CODES: readonly number[] = [-32_601, -32_603, -32_002, -32_004, -32_005, 401, 403, 429];
const REFUSAL =
  /rate.?limit|request limit|limit exceeded|limit reached|too many requests|quota|capacity|unauthori[sz]ed|forbidden|api key|txpool is full/i;

/** Whether an error does not depend on the request, so that another endpoint may answer it. */
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

/** An endpoint that refuses to name its chain can't be used: its error becomes RpcUnavailableError, not the answer to the request. */
function asSilence(error: unknown): never {
  if (error instanceof RpcUnavailableError) throw error;
  throw new RpcUnavailableError(`it does not say which chain it serves: ${describe(error)}`, error);
}

/** Whether an error comes from reading an answer of the wrong shape; the codes are those of the ABI decoder. */
const isNonsense = (error: unknown): boolean =>
  error instanceof TypeError ||
  error instanceof RangeError ||
  error instanceof SyntaxError ||
  ['BAD_DATA', 'BUFFER_OVERRUN'].includes((error as { code?: string }).code ?? '');

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
