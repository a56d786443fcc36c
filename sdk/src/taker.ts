import { maxBig } from '../../core/amounts.js';
import { cancellationTypedData } from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { asUnits } from './amount.js';
import { asDeployment, trusted, trustedToken } from './deployment.js';
import type { Deployment, TrustedContracts } from './deployment.js';
import { CurvebookError } from './errors.js';
import { createHttp } from './http.js';
import type { HttpOptions } from './http.js';
import { createQuotes, least } from './quotes.js';
import type { GaslessQuote, LimitSwap, Signable, Swap } from './quotes.js';
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

/** Callbacks for the steps of a gasless swap. */
export interface GaslessListeners {
  /** Before the signature is asked for. */
  onQuote?(quote: GaslessQuote): void;
  /** Once the server has the signature. */
  onSubmitted?(orderId: string): void;
}

export interface TakerClient {
  /** What the contract would pay now, in base units of the bought token, a partner's part included; 0 when nothing is quoted. */
  price(swap: Swap): Promise<bigint>;
  /** Allows exactly the amount, swaps it in a transaction of the signer, and returns its hash. Throws CurvebookError `NOTHING_QUOTED`, or `BELOW_MINIMUM` for less than `minBuy`. */
  swap(swap: Swap): Promise<string>;
  /**
   * Swaps by one signature, without gas, and waits until the order has ended. The token must be allowed to Permit2 once: by a second signature,
   * which is asked for first, if the token supports that, else by `allowGasless`; until then it throws CurvebookError `APPROVAL_NEEDED`. It signs
   * only an order that brings at least the contract's own price less slippage and fee, and at least `minBuy`. Throws CurvebookError `BAD_QUOTE`
   * where the server offers less three times, `FEE_TOO_HIGH` above `maxFee`, and `NO_MINIMUM` without `minBuy` where the contract quotes nothing.
   */
  swapGasless(swap: Swap, signal?: AbortSignal, listeners?: GaslessListeners): Promise<OrderStatus>;
  /**
   * Signs an order that is executed without gas once the market brings `minBuy` after the fee, and returns its id; `onSubmitted` is told it,
   * too. It may be executed until then whatever else happens, unless it is cancelled, or the tokens leave the account. Approvals are as for
   * `swapGasless`. Throws CurvebookError `BAD_QUOTE` where the server asks for another order.
   */
  placeLimit(limit: LimitSwap, listeners?: Pick<GaslessListeners, 'onSubmitted'>): Promise<string>;
  /** Cancels a gasless order of which nothing was sent. Throws CurvebookError `ORDER_SENT` or `ORDER_ENDED`. */
  cancelGasless(orderId: string): Promise<void>;
  /**
   * Allows exactly this amount of a token to Permit2; after `APPROVAL_NEEDED`, this amount more, since orders that wait take what was allowed.
   * Resolves to the transaction's hash, or null if as much is allowed already.
   */
  allowGasless(token: string, amount: string): Promise<string | null>;
}

const DEADLINE_MS = 60_000;
const POLL_MS = 1_000;
/** How often a signature is submitted that nobody answers. */
const SUBMISSIONS = 5;
/** An order's end is in a block that the server reads somewhat later. */
const AFTER_END_SEC = 120;
const MOST_WAIT_MS = 10_000;
/** Refusals that do not come from the API's own checks: what was sent may have been stored. */
const MAYBE_STORED: ReadonlySet<string> = new Set(['NO_ANSWER', 'HTTP_ERROR', 'INTERNAL_ERROR']);

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

  /** Asks for the signatures of a quote, and gives them to the server; returns the order's id. */
  async function submitted({ id, typed, approval }: Signable): Promise<string> {
    const approvalSignature =
      approval === null ? undefined : await signed({ ...approval, domain: { ...approval.domain } });
    const signature = await signed({ ...typed, message: { ...typed.message } });
    const clientOrderId = crypto.randomUUID();
    const body = { quoteId: id, signature, clientOrderId, approvalSignature };
    let isUnknown = false;
    for (let left = SUBMISSIONS; ; left -= 1) {
      try {
        return ((await http('/api/v1/orders', { method: 'POST', body })).body as { orderId: string }).orderId;
      } catch (error) {
        // The same client order id makes no second order.
        if (!isPassing(error)) throw error;
        isUnknown ||= MAYBE_STORED.has((error as CurvebookError).code);
        if (left > 1) await sleep(waitMsOf(error));
        else if (!isUnknown) throw error;
        else
          throw new CurvebookError('ORDER_UNKNOWN', `no answer says whether order ${clientOrderId} was accepted`, {
            cause: error,
          });
      }
    }
  }

  /** Every domain that is signed here names the chain. */
  async function signed({ types, ...data }: TypedData): Promise<string> {
    await onChain();
    const { EIP712Domain: _domain, ...rest } = types;
    return signer.signTypedData({ ...data, types: rest });
  }

  /** Polls until the order has ended. Its status is what counts: an answer that is missing is asked for again, until the order can't be executed any more. */
  async function ended(orderId: string, validToSec: number, signal?: AbortSignal): Promise<OrderStatus> {
    for (;;) {
      try {
        const order = (await http(`/api/v1/orders/${encodeURIComponent(orderId)}`, { signal })).body as OrderStatus;
        if (order.status !== 'pending') return order;
        await sleep(POLL_MS);
      } catch (error) {
        const isLate = clock() / 1_000 > validToSec + AFTER_END_SEC;
        if (signal?.aborted === true || isLate || !isPassing(error)) throw error;
        await sleep(waitMsOf(error));
      }
      signal?.throwIfAborted();
    }
  }

  return {
    async price(swap) {
      const { contracts, sellToken, buyToken, units } = await terms(swap);
      return quoted(contracts.entrypoint, sellToken.address, buyToken.address, units);
    },
    async swap(swap) {
      const { chain_id: chainId } = await onChain();
      const { contracts, sellToken, buyToken, units, slippageBps, wantedUnits } = await terms(swap);
      const { entrypoint } = contracts;
      const out = await quoted(entrypoint, sellToken.address, buyToken.address, units);
      if (out === 0n) throw new CurvebookError('NOTHING_QUOTED', `nothing is quoted for ${swap.amount} ${swap.sell}`);
      if (out < wantedUnits)
        throw new CurvebookError('BELOW_MINIMUM', `${out} base units are quoted, not ${wantedUnits}`);
      await allow({ signer, reader, chainId }, { token: sellToken.address, spender: entrypoint, units });
      const deadlineSec = BigInt(Math.ceil((clock() + DEADLINE_MS) / 1_000));
      const data = callData('swap(address,address,uint256,uint256,address,uint256)', [
        ...[sellToken.address, buyToken.address, units, maxBig(least(out, slippageBps), wantedUnits), owner],
        deadlineSec,
      ]);
      return senderOf(signer, chainId)({ to: entrypoint, data });
    },
    async swapGasless(swap, signal, listeners = {}) {
      await onChain();
      const { quote, ...asked } = await gasless(swap);
      listeners.onQuote?.(quote);
      const orderId = await submitted(asked);
      listeners.onSubmitted?.(orderId);
      return ended(orderId, quote.validToSec, signal);
    },
    async placeLimit(limit, listeners = {}) {
      await onChain();
      const orderId = await submitted(await limited(limit));
      listeners.onSubmitted?.(orderId);
      return orderId;
    },
    async cancelGasless(orderId) {
      const said = await known();
      const { orderSettler } = trusted(said, options.contracts);
      if (orderSettler === undefined) throw new CurvebookError('NO_GASLESS', 'no trusted settler');
      const typed = cancellationTypedData(orderId, { chainId: said.chain_id, settler: orderSettler });
      const signature = await signed({ ...typed, domain: { ...typed.domain }, message: { ...typed.message } });
      await http(`/api/v1/orders/${encodeURIComponent(orderId)}`, { method: 'DELETE', body: { signature } });
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
export type { Partnered } from './partner.js';
export type { GaslessQuote, LimitSwap, Swap } from './quotes.js';
export type { Reader, Signer, TypedData } from './wallet.js';

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Whether the same request may be answered later: there was no answer, too many were asked, or the server had a fault. */
const isPassing = (error: unknown): boolean =>
  error instanceof CurvebookError &&
  (error.code === 'NO_ANSWER' || error.status === 429 || (error.status !== null && error.status >= 500));

const waitMsOf = (error: unknown): number =>
  Math.min(MOST_WAIT_MS, Math.max(POLL_MS, ((error as CurvebookError).retryAfterSec ?? 0) * 1_000));
