import { maxBig } from '../../core/amounts.js';
import { cancellationTypedData } from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { asUnits } from './amount.js';
import { asDeployment, trusted, trustedToken } from './deployment.js';
import type { Deployment, TrustedContracts } from './deployment.js';
import { CurvebookError, type SubmittedOrder } from './errors.js';
import { bytesToHex } from './hash.js';
import { createHttp } from './http.js';
import type { HttpOptions } from './http.js';
import { asListeners, asSignal } from './listeners.js';
import type { GaslessListeners } from './listeners.js';
import { CANCELLATION_CODES, isNothingStored, isRefusal, isUnsaid } from './outcome.js';
import { createQuotes, least } from './quotes.js';
import type { DirectSwap, LimitSwap, Signable, Swap } from './quotes.js';
import { createReadClient } from './read/client.js';
import { allow, asAddress, assertChain, callData, senderOf } from './wallet.js';
import type { Reader, Signer, TypedData } from './wallet.js';

export interface TakerOptions extends HttpOptions {
  url: string;
  signer: Signer;
  reader: Reader;
  /** Contracts and tokens that you know, or `'server'` to trust the server's. */
  contracts: TrustedContracts | 'server';
  /** Unix milliseconds. */
  clock?: () => number;
}

/** A gasless order as the server describes it. Amounts are base units of their tokens. */
export interface OrderStatus {
  orderId: string;
  status: 'pending' | 'filled' | 'failed' | 'expired';
  executedSellAmount: string;
  executedBuyAmount: string;
  /** Of an order with a partner: what that got of the bought token; null until the order is filled. */
  partnerFeeAmount?: string | null;
  txHash: string | null;
  reason: { code: string; message: string } | null;
}

export interface TakerClient {
  /** What the contract would pay now, in base units of the bought token, a partner's part included; 0 when nothing is quoted. */
  price(swap: Swap): Promise<bigint>;
  /** Allows exactly the amount, swaps it in a transaction of the signer, and returns its hash. Throws CurvebookError `NOTHING_QUOTED`, or `BELOW_MINIMUM` for less than `minBuy`. `signal` ends it with its own reason before each transaction that it would ask for. */
  swap(swap: DirectSwap, signal?: AbortSignal): Promise<string>;
  /**
   * Swaps by one signature, without gas, and waits until the order has ended. The token must be allowed to Permit2 once: by a second signature,
   * which is asked for first, if the token supports that, else by `allowGasless`; until then it throws CurvebookError `APPROVAL_NEEDED`. It signs
   * only an order that brings at least the contract's own price less slippage and fee, and at least `minBuy`. Throws CurvebookError `BAD_QUOTE`
   * where the server offers less three times, `FEE_TOO_HIGH` above `maxFee`, and `NO_MINIMUM` without `minBuy` where the contract quotes nothing.
   * Throws CurvebookError `ORDER_UNKNOWN`, with the order's ids as `order`, where no answer says what became of it. `signal` ends all of it with its own
   * reason until the order is submitted, and then the waiting alone, with CurvebookError `WAIT_ABORTED` and the same `order`, as does an `onSubmitted`
   * that throws.
   */
  swapGasless(swap: Swap, signal?: AbortSignal, listeners?: GaslessListeners): Promise<OrderStatus>;
  /**
   * Signs an order that is executed without gas once the market brings `minBuy` after the fee, and returns its id; `onSubmitted` is told it,
   * too. It may be executed until then whatever else happens, unless it is cancelled, or the tokens leave the account. Approvals are as for
   * `swapGasless`, and so is the signal. Throws CurvebookError `BAD_QUOTE` where the server asks for another order.
   */
  placeLimit(
    limit: LimitSwap,
    listeners?: Pick<GaslessListeners, 'onSubmitted'>,
    signal?: AbortSignal,
  ): Promise<string>;
  /**
   * Cancels a gasless order of which nothing was sent. Throws CurvebookError `ORDER_SENT` or `ORDER_ENDED`, and `NO_ANSWER` where nothing says whether it
   * is cancelled: a repeated cancellation is answered like the first.
   */
  cancelGasless(orderId: string): Promise<void>;
  /**
   * Allows exactly this amount of a token to Permit2; after `APPROVAL_NEEDED`, this amount more, since orders that wait take what was allowed.
   * Resolves to the transaction's hash, or null if as much is allowed already.
   */
  allowGasless(token: string, amount: string): Promise<string | null>;
}

/** An order that the server has taken. */
type Accepted = SubmittedOrder & { orderId: string };

const DEADLINE_MS = 60_000;
const POLL_MS = 1_000;
/** How often a signature is submitted that nobody answers. */
const SUBMISSIONS = 5;
/** An order's end is in a block that the server reads somewhat later. */
export const AFTER_END_SEC = 120;
const MOST_WAIT_MS = 10_000;
const STATUSES: ReadonlySet<unknown> = new Set<OrderStatus['status']>(['pending', 'filled', 'failed', 'expired']);

export function createTakerClient(options: TakerOptions): TakerClient {
  const { url, signer, reader, clock = Date.now } = options;
  const http = createHttp(url, options);
  const read = createReadClient(url, options);
  const owner = asAddress(signer.address);
  let deployment: Promise<Deployment> | null = null;
  /** Sold tokens of which Permit2 may not take enough for one order more. */
  const short = new Set<Address>();

  function known(): Promise<Deployment> {
    deployment ??= read
      .deployment()
      .then(asDeployment)
      .catch((error: unknown) => {
        deployment = null;
        throw error;
      });
    return deployment;
  }

  /** What the server says of the deployment, if that is the trusted one and the wallet is on its chain. */
  async function onChain(): Promise<Deployment> {
    const said = await known();
    trusted(said, options.contracts);
    await assertChain(signer, said.chain_id);
    return said;
  }

  const tokenFor = (said: Deployment, name: string) => trustedToken(said, name, { known: options.contracts, reader });

  const { terms, quoted, gasless, limited } = createQuotes({
    ...{ http, reader, owner, clock, known, tokenFor, contracts: options.contracts },
    onShort: (token) => short.add(token),
  });

  /** Asks for the signatures of a quote, and gives them to the server. From the first submission on, what is thrown names the order unless nothing was stored. */
  async function submitted({ id, typed, approval, validToSec }: Signable, signal?: AbortSignal): Promise<Accepted> {
    signal?.throwIfAborted();
    const approvalSignature =
      approval === null ? undefined : await signed({ ...approval, domain: { ...approval.domain } });
    signal?.throwIfAborted();
    const signature = await signed({ ...typed, message: { ...typed.message } });
    signal?.throwIfAborted();
    const order = { clientOrderId: newId(), orderId: null, validToSec };
    const body = { quoteId: id, signature, clientOrderId: order.clientOrderId, approvalSignature };
    let isUnknown = false;
    for (let left = SUBMISSIONS - 1; ; left -= 1) {
      let failure: unknown;
      try {
        const answer = await http('/api/v1/orders', { method: 'POST', body });
        return { ...order, orderId: orderIdIn(answer.body) };
      } catch (error) {
        failure = error;
      }
      isUnknown ||= !isNothingStored(failure);
      // The same client order id makes no second order.
      const isRepeated = left > 0 && !isRefusal(failure);
      if (isRepeated) await sleep(waitMsOf(failure), signal);
      if (signal?.aborted === true) {
        if (isUnknown) throw notAwaited(order, signal.reason);
        signal.throwIfAborted();
      }
      if (isRepeated) continue;
      throw isUnknown ? unknownOrder(order, failure) : failure;
    }
  }

  /** Every domain that is signed here names the chain. */
  async function signed({ types, ...data }: TypedData): Promise<string> {
    await onChain();
    const { EIP712Domain: _domain, ...rest } = types;
    return signer.signTypedData({ ...data, types: rest });
  }

  /**
   * Polls until the order has ended. Whatever else is answered says nothing of it, not even that there is no such order: a reader may not have it yet.
   * So it is asked for again until an order that ended must be seen to have.
   */
  async function ended(order: Accepted, signal?: AbortSignal): Promise<OrderStatus> {
    const path = `/api/v1/orders/${encodeURIComponent(order.orderId)}`;
    // By a clock that is ahead it is over before it begins.
    const lateSec = Math.max(order.validToSec, clock() / 1_000) + AFTER_END_SEC;
    for (;;) {
      let failure: unknown = null;
      try {
        const found = statusIn((await http(path, { signal })).body);
        if (found.status !== 'pending') return found;
      } catch (error) {
        failure = error;
      }
      if (signal?.aborted === true) throw notAwaited(order, signal.reason);
      if (clock() / 1_000 > lateSec) throw unknownOrder(order, failure);
      await sleep(failure === null ? POLL_MS : waitMsOf(failure), signal);
    }
  }

  return {
    async price(swap) {
      const { contracts, sellToken, buyToken, units } = await terms(swap);
      return quoted(contracts.entrypoint, sellToken.address, buyToken.address, units);
    },
    async swap(swap, givenSignal = undefined) {
      const signal = asSignal(givenSignal);
      if (swap.partner !== undefined || swap.appData !== undefined)
        throw new CurvebookError('BAD_ARGUMENT', 'only swapGasless and placeLimit take a partner and appData');
      const { chain_id: chainId } = await onChain();
      const { contracts, sellToken, buyToken, units, slippageBps, wantedUnits } = await terms(swap);
      const { entrypoint } = contracts;
      const out = await quoted(entrypoint, sellToken.address, buyToken.address, units);
      if (out === 0n) throw new CurvebookError('NOTHING_QUOTED', `nothing is quoted for ${swap.amount} ${swap.sell}`);
      if (out < wantedUnits)
        throw new CurvebookError('BELOW_MINIMUM', `${out} base units are quoted, not ${wantedUnits}`);
      await allow({ signer, reader, chainId }, { token: sellToken.address, spender: entrypoint, units }, signal);
      signal?.throwIfAborted();
      const deadlineSec = BigInt(Math.ceil((clock() + DEADLINE_MS) / 1_000));
      const data = callData('swap(address,address,uint256,uint256,address,uint256)', [
        ...[sellToken.address, buyToken.address, units, maxBig(least(out, slippageBps), wantedUnits), owner],
        deadlineSec,
      ]);
      return senderOf(signer, chainId)({ to: entrypoint, data });
    },
    async swapGasless(swap, givenSignal, givenListeners) {
      const [signal, listeners] = [asSignal(givenSignal), asListeners(givenListeners)];
      signal?.throwIfAborted();
      await onChain();
      const { quote, ...asked } = await gasless(swap, signal);
      await listeners.onQuote?.(quote);
      const order = await submitted(asked, signal);
      await tellSubmitted(order, listeners);
      return ended(order, signal);
    },
    async placeLimit(limit, givenListeners, givenSignal) {
      const [signal, listeners] = [asSignal(givenSignal), asListeners(givenListeners)];
      signal?.throwIfAborted();
      await onChain();
      const order = await submitted(await limited(limit, signal), signal);
      await tellSubmitted(order, listeners);
      return order.orderId;
    },
    async cancelGasless(orderId) {
      if (typeof orderId !== 'string' || orderId === '')
        throw new CurvebookError('BAD_ARGUMENT', 'orderId is a string');
      const said = await known();
      const { orderSettler } = trusted(said, options.contracts);
      if (orderSettler === undefined) throw new CurvebookError('NO_GASLESS', 'no trusted settler');
      const typed = cancellationTypedData(orderId, { chainId: said.chain_id, settler: orderSettler });
      const signature = await signed({ ...typed, domain: { ...typed.domain }, message: { ...typed.message } });
      const asked = http(`/api/v1/orders/${encodeURIComponent(orderId)}`, { method: 'DELETE', body: { signature } });
      const { body } = await asked.catch((error: unknown) => {
        throw isUnsaid(error, CANCELLATION_CODES) ? notSaidCancelled(orderId, error) : error;
      });
      assertCancelled(orderId, body);
    },
    async allowGasless(name, amount) {
      const said = await onChain();
      const { permit2 } = trusted(said, options.contracts);
      if (permit2 === undefined) throw new CurvebookError('NO_GASLESS', 'no trusted Permit2');
      const token = await tokenFor(said, name);
      const units = asUnits(amount, token, 'amount');
      const isMore = short.has(token.address);
      const client = { signer, reader, chainId: said.chain_id };
      const hash = await allow(client, { token: token.address, spender: permit2, units, isMore });
      short.delete(token.address);
      return hash;
    },
  };
}

export type { Deployment, TrustedContracts, TrustedToken } from './deployment.js';
export type { GaslessListeners } from './listeners.js';
export type { Partnered } from './partner.js';
export type { SubmittedOrder } from './errors.js';
export type { DirectSwap, GaslessQuote, LimitSwap, Swap } from './quotes.js';
export type { Reader, Signer, TypedData } from './wallet.js';

/** Ends early when the signal aborts. */
const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
    if (signal?.aborted === true) done();
  });

/** A random UUID of version 4; `crypto.randomUUID` is missing on pages that are served over plain HTTP. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytesToHex(bytes).slice(2);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const fieldsOf = (answer: unknown): Record<string, unknown> => Object(answer) as Record<string, unknown>;

/** Of an answer that accepts an order. Throws CurvebookError `HTTP_ERROR` for one that something on the way has changed. */
function orderIdIn(answer: unknown): string {
  const { orderId } = fieldsOf(answer);
  if (typeof orderId === 'string' && orderId !== '') return orderId;
  throw new CurvebookError('HTTP_ERROR', 'the answer to the submission names no order');
}

/** Likewise of an answer that describes an order. */
function statusIn(answer: unknown): OrderStatus {
  const { status } = fieldsOf(answer);
  if (STATUSES.has(status)) return answer as OrderStatus;
  throw new CurvebookError('HTTP_ERROR', `the answer has no status of an order: ${String(status).slice(0, 40)}`);
}

/** A cancelled order is a failed one. Throws CurvebookError `ORDER_ENDED` for one that ended otherwise, and `NO_ANSWER` where the answer says neither. */
function assertCancelled(orderId: string, answer: unknown): void {
  const { orderId: named, status } = fieldsOf(answer);
  if (named !== orderId || (status !== 'failed' && status !== 'filled' && status !== 'expired'))
    throw notSaidCancelled(orderId);
  if (status !== 'failed') throw new CurvebookError('ORDER_ENDED', `order ${orderId} is ${status}`);
}

const notSaidCancelled = (orderId: string, cause?: unknown): CurvebookError => {
  const message = `the answer does not say whether order ${orderId} is cancelled: cancel it again, which is answered alike`;
  return new CurvebookError('NO_ANSWER', message, { cause });
};

const unknownOrder = (order: SubmittedOrder, cause: unknown): CurvebookError =>
  new CurvebookError('ORDER_UNKNOWN', `no answer says ${outcomeOf(order)}`, { order, cause: cause ?? undefined });

const outcomeOf = ({ orderId, clientOrderId }: SubmittedOrder): string =>
  orderId === null
    ? `whether order ${clientOrderId} was accepted`
    : `what became of order ${orderId} (its client order id is ${clientOrderId})`;

/** What is thrown where the caller's signal or listener ends the waiting after a submission. */
const notAwaited = (order: SubmittedOrder, cause: unknown): CurvebookError =>
  new CurvebookError('WAIT_ABORTED', `the waiting was ended before it was known ${outcomeOf(order)}`, { order, cause });

/** Whatever the listener does, the order stands. */
async function tellSubmitted(order: Accepted, listeners: GaslessListeners): Promise<void> {
  try {
    await listeners.onSubmitted?.(order.orderId);
  } catch (error) {
    throw notAwaited(order, error);
  }
}

const waitMsOf = (error: unknown): number => {
  const retryAfterSec = error instanceof CurvebookError ? (error.retryAfterSec ?? 0) : 0;
  return Math.min(MOST_WAIT_MS, Math.max(POLL_MS, retryAfterSec * 1_000));
};
