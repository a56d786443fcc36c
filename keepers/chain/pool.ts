import { setTimeout as delay } from 'node:timers/promises';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { isFailedCall } from '../../liquidity/eth.js';
import { createEndpoints, describe, type Endpoint, type EndpointHealth, type PoolOptions } from './endpoints.js';
import type { Vote } from './rpc.js';
import { RpcContradictionError, RpcResponseError, RpcUnavailableError, type Rpc, type RpcRequest } from './rpc.js';

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
   * answers with an error; it is penalised if another one answers without. A call that fails in a contract is an answer, and ends the work:
   * nothing else that an endpoint says of another method does. For reads only, because the work is repeated from its beginning.
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

const PROBE_INTERVAL_MS = 5_000;
/** How long a survey waits for the others once one has answered. */
const PATIENCE_MS = 1_000;

/** A pool over at least one URL. */
export function createRpcPool(urls: readonly string[], options: PoolOptions): RpcPool {
  const { nowMs } = options;
  const states = createEndpoints(urls, options);
  const { all: endpoints, candidates, rests, fail, convict, blame, succeed } = states;
  let probedMs = Number.NEGATIVE_INFINITY;

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
      const judgeStep = states.watchStep(one);
      try {
        const answer = await work(one.rpc);
        judgeStep();
        states.complete(one);
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
          if (error instanceof RpcResponseError) {
            succeed(one);
            failRefused(refused);
          }
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
      const fromMs = nowMs();
      const head = toSafeInt(BigInt((await one.rpc.call('eth_blockNumber')) as Hex));
      states.saw(one, head, nowMs() - fromMs);
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
    const asked = endpoints.filter(states.isAsked).map(probeOne);
    const heard = Promise.withResolvers<void>();
    for (const one of asked) void one.then((answered) => answered && heard.resolve());
    await withPatience(Promise.all(asked), isPatient ? null : heard.promise);
  }

  return {
    get name() {
      return states.inUse().raw.name;
    },
    get endpoints() {
      return endpoints.filter((one) => !states.isOfOtherChain(one)).map((one) => one.rpc);
    },
    call: (method, params = []) => ask((rpc) => rpc.call(method, params)),
    batch: (requests: readonly RpcRequest[]) => ask((rpc) => rpc.batch(requests)),
    ranked: () => candidates().map(({ rpc }) => rpc),
    attempt,
    survey,
    probe,
    penalize: (problem, endpoint) => convict(endpointOf(endpoint ?? null) ?? states.inUse(), problem),
    health: states.health,
    otherChains: () =>
      endpoints.every(states.isOfOtherChain) ? endpoints.flatMap(({ servedChain }) => servedChain ?? []) : [],
  };
}

/** The last failure of a request, or that no endpoint could be asked: an error takes as long to make as the rest of a request. */
const failureOf = (last: unknown): unknown =>
  last ?? new RpcUnavailableError('no RPC endpoint serves the configured chain');

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

/** Whether an error comes from reading an answer of the wrong shape; the codes are those of the ABI decoder. */
const isNonsense = (error: unknown): boolean =>
  error instanceof TypeError ||
  error instanceof RangeError ||
  error instanceof SyntaxError ||
  ['BAD_DATA', 'BUFFER_OVERRUN'].includes((error as { code?: string }).code ?? '');
