/** What is known of each endpoint of a pool: which chain it serves, how far it is, and for how long it is passed over. */
import type { Logger } from 'pino';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { RpcAnswerTooLargeError, RpcBusyError, RpcUnavailableError, createRpc, type Rpc } from './rpc.js';

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

/** What a pool is made with. */
export interface PoolOptions {
  /** For intervals only; monotonic, so that a step of the wall clock neither prolongs nor ends a pause. */
  nowMs(): number;
  logger: Logger;
  /** Endpoints of another chain are never used. Unchecked when absent. */
  chainId?: number;
  /** Makes the client of one URL; tests inject faults here. */
  connect?(url: string): Rpc;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** First pause of an endpoint whose answer could not be true. */
const FIRST_CONVICTION_MS = 1_000;
const LONGEST_CONVICTION_MS = 60_000;
/** An answer that takes this long is true and late: several in a row make a step older than the ledger may be. */
const SLOW_MS = 2_000;
/** So are answers that a step has waited for so long altogether: a look of the watcher has some six questions, one after the other. */
const SLOW_STEP_MS = 3_000;
/** Whoever was late is so until its newest block, which costs nothing to say, takes less: a step of such answers would be late again. */
const QUICK_MS = SLOW_STEP_MS / 6;
/** How long whoever answers so is passed over, while another one does not. */
const FIRST_SLOW_PAUSE_MS = 10_000;
const LONGEST_SLOW_PAUSE_MS = 300_000;
/** An endpoint more than this many blocks behind the others is not used. */
const MAX_LAG_BLOCKS = 2;
/** Neither is one whose head has not moved for so long while another one is further. */
const STUCK_MS = 10_000;
/** How long the chain that an endpoint named is taken for granted. */
const CHAIN_CHECK_MS = 60_000;

/** One endpoint, and what was seen of it. */
export interface Endpoint {
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
  /** What it last took to say how far it is. */
  probeTookMs: number;
  /** Requests under way, and since when there has been one without a break. */
  open: number;
  openSinceMs: number;
  /** How long there was one, until the last time that there was none. */
  waitedMs: number;
  head: number | null;
  headMovedMs: number;
  problem: string | null;
  /** Null until the endpoint has said which chain it serves. */
  servedChain: number | null;
  chainCheckedMs: number;
  checking: Promise<void> | null;
  counts: EndpointCounts;
}

interface Endpoints {
  readonly all: readonly Endpoint[];
  /** The one that answered last. */
  inUse(): Endpoint;
  /** In the order in which they are asked: healthy ones first, those of another chain not at all. */
  candidates(): Endpoint[];
  /** Whether it may be asked for its head. */
  isAsked(one: Endpoint): boolean;
  isOfOtherChain(one: Endpoint): boolean;
  /** Whether it is passed over after a failure or a conviction. */
  rests(one: Endpoint): boolean;
  /** Passes an endpoint over for a while, for `leastMs` at least. */
  fail(one: Endpoint, problem: string, leastMs?: number): void;
  /** Passes it over for longer: what it answered can't be true. */
  convict(one: Endpoint, problem: string): void;
  /** One of the two, by the error. */
  blame(one: Endpoint, error: unknown): void;
  /** It answered, and is the one in use from now on. */
  succeed(one: Endpoint): void;
  /** As `succeed`, after all of a step: it begins anew with what it was convicted of, or late with. */
  complete(one: Endpoint): void;
  /**
   * Begins to measure how long a step waits for its answers; what is asked at the same time counts once. What it returns is to be called at
   * the end of the step, when that succeeded.
   */
  watchStep(one: Endpoint): () => void;
  /** Notes its newest block, and how long it took to say it. */
  saw(one: Endpoint, head: number, tookMs: number): void;
  health(): EndpointHealth[];
}

/** The endpoints of a pool, at least one, in the order configured. */
export function createEndpoints(urls: readonly string[], options: PoolOptions): Endpoints {
  const { logger, nowMs, chainId: expected, connect = createRpc } = options;
  const endpoints = urls.map((url) => newEndpoint(connect(url)));
  const first = endpoints[0];
  if (first === undefined) throw new RangeError('an RPC pool needs at least one endpoint');
  let inUse = first;

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
      probeTookMs: 0,
      open: 0,
      openSinceMs: 0,
      waitedMs: 0,
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
  const wasSlow = (one: Endpoint): boolean =>
    one.slowUntilMs > nowMs() || (one.slowAnswers > 0 && one.probeTookMs >= QUICK_MS);
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
    if (one.open === 0) one.openSinceMs = fromMs;
    one.open += 1;
    try {
      const said = await request();
      if (nowMs() - fromMs >= SLOW_MS) late(one, nowMs() - fromMs);
      return said;
    } finally {
      one.open -= 1;
      if (one.open === 0) one.waitedMs += nowMs() - one.openSinceMs;
    }
  }

  /** At the end of a pause it counts once more: what is asked at the same time is late together. */
  function late(one: Endpoint, tookMs: number): void {
    if (wasSlow(one)) return;
    one.slowAnswers += 1;
    const pauseMs = Math.min(FIRST_SLOW_PAUSE_MS * 2 ** (one.slowAnswers - 1), LONGEST_SLOW_PAUSE_MS);
    one.slowUntilMs = nowMs() + pauseMs;
    if (isSlow(one)) logger.warn({ rpc: one.raw.name, tookMs }, 'an RPC endpoint answers late');
  }

  const waitedFor = (one: Endpoint): number => one.waitedMs + (one.open === 0 ? 0 : nowMs() - one.openSinceMs);

  function watchStep(one: Endpoint): () => void {
    const fromMs = waitedFor(one);
    return () => {
      const tookMs = waitedFor(one) - fromMs;
      if (tookMs >= SLOW_STEP_MS) late(one, tookMs);
    };
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

  function complete(one: Endpoint): void {
    succeed(one);
    if (one.convictedUntilMs <= nowMs()) one.convictions = 0;
    if (!wasSlow(one)) one.slowAnswers = 0;
  }

  function saw(one: Endpoint, head: number, tookMs: number): void {
    one.probeTookMs = tookMs;
    if (head !== one.head) one.headMovedMs = nowMs();
    one.head = head;
  }

  return {
    all: endpoints,
    inUse: () => inUse,
    candidates,
    isAsked: (one) => !isOfOtherChain(one) || isCheckDue(one),
    isOfOtherChain,
    rests,
    fail,
    convict,
    blame,
    succeed,
    complete,
    watchStep,
    saw,
    health: () =>
      endpoints.map((one) => ({
        name: one.raw.name,
        healthy: isHealthy(one),
        head: one.head,
        failures: one.failures + one.convictions,
        problem: one.problem ?? lagOf(one),
        counts: { ...one.counts },
      })),
  };
}

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

/** What an error says. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
