import { floorDiv, maxBig, minBig } from '../../core/amounts.js';
import { netUnits } from '../../core/swap/partner.js';
import { cancellationTypedData, orderTypedData, permitTypedData } from '../../core/swap/typed-data.js';
import type { PermitStyle, PermitTerms, PermitTypedData, TokenDomain } from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { asUnits } from './amount.js';
import { asDeployment, trusted, trustedToken } from './deployment.js';
import type { Deployment, TrustedContracts } from './deployment.js';
import { CurvebookError } from './errors.js';
import { askedOf, termsOf, type Partnered } from './partner.js';
import { createHttp } from './http.js';
import type { HttpOptions } from './http.js';
import { createReadClient } from './read/client.js';
import { allow, asAddress, callData, firstWord, senderOf } from './wallet.js';
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

/** Tokens by symbol or address; amounts are exact decimals in tokens. */
export interface Swap extends Partnered {
  sell: string;
  buy: string;
  amount: string;
  /** How much less than quoted is still taken, in bps; 50 by default. */
  slippageBps?: number;
  /** The least that is taken, in the bought token. A gasless swap needs it where the contract quotes nothing. */
  minBuy?: string;
  /** The most that a gasless swap may cost in gas, in the sold token; a hundredth of the amount by default. */
  maxFee?: string;
}

/** Tokens by symbol or address; amounts are exact decimals in tokens. */
export interface LimitSwap extends Partnered {
  sell: string;
  buy: string;
  /** What is sold, the fee included. */
  amount: string;
  /** The least that arrives, after every fee: the limit. */
  minBuy: string;
  /** How long it may wait for that price, in seconds: 60 to 30 days; a day by default. */
  validForSec?: number;
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

/** A quote that passed the client's checks and is about to be signed. Amounts are base units of their tokens. */
export interface GaslessQuote {
  sellUnits: bigint;
  buyUnits: bigint;
  minBuyUnits: bigint;
  feeUnits: bigint;
  /** Until when the server takes the signature, Unix milliseconds. */
  expiresMs: number;
  /** Last second at which it may be executed. */
  validToSec: number;
  /** Whether the approval of the token to Permit2 is signed beside it. */
  signsApproval: boolean;
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

interface QuoteAnswer {
  id: string;
  expiration: string;
  quote: { sellAmount: string; buyAmount: string; minBuyAmount: string; validTo: number; feeAmount: string };
  permit2: { typedData: { message: { nonce: string } } };
  /** Absent if the server is of a version without approvals by signature. */
  approval?: {
    required: boolean;
    type: PermitStyle | 'none';
    typedData: { domain: TokenDomain; message: { nonce: string } } | null;
  };
}

const DEADLINE_MS = 60_000;
const DAY_SEC = 86_400;
const POLL_MS = 1_000;
/** A quote whose order would be valid for longer than this is refused. */
const MAX_VALID_SEC = 3_600;
/** How often a quote is asked for that is not fair. */
const QUOTES = 3;
/** How often a signature is submitted that nobody answers. */
const SUBMISSIONS = 5;
/** An order's end is in a block that the server reads somewhat later. */
const AFTER_END_SEC = 120;
const MOST_WAIT_MS = 10_000;
/** Refusals that do not come from the API's own checks: what was sent may have been stored. */
const MAYBE_STORED: ReadonlySet<string> = new Set(['NO_ANSWER', 'HTTP_ERROR', 'INTERNAL_ERROR']);
/** Of the amount, where the caller bounds no fee. */
const MAX_FEE_BPS = 100n;

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

  async function terms({ sell, buy, amount, slippageBps = 50, minBuy, maxFee, ...partnered }: Swap) {
    if (!Number.isInteger(slippageBps) || slippageBps < 0 || slippageBps > 10_000) {
      throw new CurvebookError('BAD_ARGUMENT', 'slippageBps is a whole number from 0 to 10000');
    }
    const said = await known();
    const contracts = trusted(said, options.contracts);
    const [sellToken, buyToken] = await Promise.all([tokenFor(said, sell), tokenFor(said, buy)]);
    const units = asUnits(amount, sellToken, 'amount');
    const wantedUnits = minBuy === undefined ? 0n : asUnits(minBuy, buyToken, 'minBuy');
    const maxFeeUnits =
      maxFee === undefined ? floorDiv(units * MAX_FEE_BPS, 10_000n) : asUnits(maxFee, sellToken, 'maxFee');
    const extra = termsOf(partnered);
    return { said, contracts, sellToken, buyToken, units, slippageBps, wantedUnits, maxFeeUnits, extra };
  }

  const tokenFor = (said: Deployment, name: string) => trustedToken(said, name, { known: options.contracts, reader });

  async function quoted(entrypoint: Address, sell: Address, buy: Address, units: bigint): Promise<bigint> {
    const data = callData('quoteFor(address,address,address,uint256)', [owner, sell, buy, units]);
    return firstWord(await reader.call({ to: entrypoint, data, from: owner }));
  }

  const least = (units: bigint, bps: number): bigint => floorDiv(units * BigInt(10_000 - bps), 10_000n);

  /**
   * Builds the typed data itself, from what the caller asked for: of the server's answer only the nonce, the deadline and the minimum are signed, and
   * these are checked. The minimum is compared with the contract's price before and after the quote, since a block may come between; the lower
   * price counts.
   */
  async function gasless(swap: Swap) {
    const { said, contracts, sellToken, buyToken, units, slippageBps, wantedUnits, maxFeeUnits, extra } =
      await terms(swap);
    const { entrypoint, orderSettler, permit2 } = contracts;
    if (orderSettler === undefined || permit2 === undefined) {
      throw new CurvebookError('NO_GASLESS', 'no trusted settler and Permit2 for gasless swaps');
    }
    const priced = (): Promise<bigint> => quoted(entrypoint, sellToken.address, buyToken.address, units);
    const before = await priced();
    if (before === 0n && wantedUnits === 0n) {
      throw new CurvebookError(
        'NO_MINIMUM',
        `the contract quotes nothing for ${swap.amount} ${swap.sell}: give minBuy`,
      );
    }
    const body = {
      chainId: said.chain_id,
      from: owner,
      sellToken: sellToken.address,
      buyToken: buyToken.address,
      kind: 'sell',
      sellAmountBeforeFee: units.toString(),
      slippageBps,
      signingScheme: 'eip712',
      ...askedOf(extra),
    };
    const answer = asQuote((await http('/api/v1/quote', { method: 'POST', body })).body);
    const { validTo, ...amounts } = answer.quote;
    const sellUnits = unitsOf(amounts.sellAmount);
    const minBuyUnits = unitsOf(amounts.minBuyAmount);
    const feeUnits = unitsOf(amounts.feeAmount);
    if (sellUnits !== units) throw lied(`sells ${sellUnits} base units, not ${units}`);
    if (feeUnits > maxFeeUnits || feeUnits >= units) {
      throw new CurvebookError(
        'FEE_TOO_HIGH',
        `the quote is not signed: its fee is ${feeUnits}, at most ${maxFeeUnits} is paid`,
      );
    }
    const prices = [before, await priced()].filter((price) => price > 0n);
    const floors = prices.map((price) =>
      least(netUnits(floorDiv(price * (units - feeUnits), units), extra), slippageBps),
    );
    const [first = 0n, ...rest] = floors;
    const floor = maxBig(minBig(first, ...rest), wantedUnits, least(unitsOf(amounts.buyAmount), slippageBps), 1n);
    if (minBuyUnits < floor) throw lied(`may buy ${minBuyUnits} base units, and ${floor} are the least`);
    if (!Number.isSafeInteger(validTo) || validTo > clock() / 1_000 + MAX_VALID_SEC)
      throw lied(`may be executed until ${validTo}`);
    const typed = orderTypedData(
      {
        sellToken: sellToken.address,
        sellUnits: units,
        nonce: unitsOf(answer.permit2.typedData.message.nonce),
        validToSec: validTo,
        receiver: owner,
        buyToken: buyToken.address,
        minBuyUnits,
        ...extra,
      },
      { chainId: said.chain_id, permit2, spender: orderSettler },
    );
    const buyUnits = unitsOf(amounts.buyAmount);
    const expiresMs = Date.parse(answer.expiration);
    const approval = neededApproval(answer, {
      ...{ name: swap.sell, token: sellToken.address, chainId: said.chain_id },
      terms: { owner, spender: permit2, deadlineSec: validTo },
    });
    const quote: GaslessQuote = {
      ...{ sellUnits, buyUnits, minBuyUnits, feeUnits, expiresMs, validToSec: validTo },
      signsApproval: approval !== null,
    };
    return { id: answer.id, typed, approval, quote };
  }

  /** Nothing of the server's is signed but a nonce: the amounts and the time are those that were asked for. */
  async function limited({ validForSec = DAY_SEC, ...swap }: LimitSwap) {
    if (!Number.isInteger(validForSec) || validForSec < 60 || validForSec > 30 * DAY_SEC) {
      throw new CurvebookError('BAD_ARGUMENT', 'validForSec is a whole number from 60 to 2592000');
    }
    const { said, contracts, sellToken, buyToken, units, wantedUnits, extra } = await terms(swap);
    const { orderSettler, permit2 } = contracts;
    if (wantedUnits <= 0n) throw new CurvebookError('BAD_ARGUMENT', 'minBuy is above zero');
    if (orderSettler === undefined || permit2 === undefined) {
      throw new CurvebookError('NO_GASLESS', 'no trusted settler and Permit2 for gasless swaps');
    }
    const validToSec = Math.floor(clock() / 1_000) + validForSec;
    const body = {
      ...{ chainId: said.chain_id, from: owner, sellToken: sellToken.address, buyToken: buyToken.address },
      ...{ kind: 'sell', orderClass: 'limit', signingScheme: 'eip712' },
      ...{ sellAmountBeforeFee: units.toString(), minBuyAmount: wantedUnits.toString(), validTo: validToSec },
      ...askedOf(extra),
    };
    const answer = asQuote((await http('/api/v1/quote', { method: 'POST', body })).body);
    const { sellAmount, minBuyAmount, validTo } = answer.quote;
    if (unitsOf(sellAmount) !== units) throw lied(`sells ${sellAmount} base units, not ${units}`);
    if (unitsOf(minBuyAmount) !== wantedUnits) throw lied(`buys ${minBuyAmount} base units, not ${wantedUnits}`);
    if (validTo !== validToSec) throw lied(`may be executed until ${validTo}, not ${validToSec}`);
    const typed = orderTypedData(
      {
        ...{ sellToken: sellToken.address, sellUnits: units, validToSec, receiver: owner },
        ...{ buyToken: buyToken.address, minBuyUnits: wantedUnits, ...extra },
        nonce: unitsOf(answer.permit2.typedData.message.nonce),
      },
      { chainId: said.chain_id, permit2, spender: orderSettler },
    );
    const approval = neededApproval(answer, {
      ...{ name: swap.sell, token: sellToken.address, chainId: said.chain_id },
      terms: { owner, spender: permit2, deadlineSec: validToSec },
    });
    return { id: answer.id, typed, approval };
  }

  /** As `approvalOf`, and remembers what is to be allowed by a transaction. */
  function neededApproval(...[answer, of]: Parameters<typeof approvalOf>): PermitTypedData | null {
    try {
      return approvalOf(answer, of);
    } catch (error) {
      if (error instanceof CurvebookError && error.code === 'APPROVAL_NEEDED') short.add(of.token);
      throw error;
    }
  }

  /** Asks for the signatures of a quote, and gives them to the server; returns the order's id. */
  async function submitted({
    id,
    typed,
    approval,
  }: Omit<Awaited<ReturnType<typeof gasless>>, 'quote'>): Promise<string> {
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

  async function signed({ types, ...data }: TypedData): Promise<string> {
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
      const { contracts, sellToken, buyToken, units, slippageBps, wantedUnits } = await terms(swap);
      const { entrypoint } = contracts;
      const out = await quoted(entrypoint, sellToken.address, buyToken.address, units);
      if (out === 0n) throw new CurvebookError('NOTHING_QUOTED', `nothing is quoted for ${swap.amount} ${swap.sell}`);
      if (out < wantedUnits)
        throw new CurvebookError('BELOW_MINIMUM', `${out} base units are quoted, not ${wantedUnits}`);
      await allow({ signer, reader }, { token: sellToken.address, spender: entrypoint, units });
      const deadlineSec = BigInt(Math.ceil((clock() + DEADLINE_MS) / 1_000));
      const data = callData('swap(address,address,uint256,uint256,address,uint256)', [
        ...[sellToken.address, buyToken.address, units, maxBig(least(out, slippageBps), wantedUnits), owner],
        deadlineSec,
      ]);
      return senderOf(signer)({ to: entrypoint, data });
    },
    async swapGasless(swap, signal, listeners = {}) {
      const { quote, ...asked } = await fairly(() => gasless(swap));
      listeners.onQuote?.(quote);
      const orderId = await submitted(asked);
      listeners.onSubmitted?.(orderId);
      return ended(orderId, quote.validToSec, signal);
    },
    async placeLimit(limit, listeners = {}) {
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
      const said = await known();
      const { permit2 } = trusted(said, options.contracts);
      if (permit2 === undefined) throw new CurvebookError('NO_GASLESS', 'no trusted Permit2');
      const token = await tokenFor(said, name);
      const units = asUnits(amount, token, 'amount');
      const isMore = short.has(token.address);
      const hash = await allow({ signer, reader }, { token: token.address, spender: permit2, units, isMore });
      short.delete(token.address);
      return hash;
    },
  };
}

/**
 * Typed data by which Permit2 may take the token, built here. Only a nonce and the names in the token's domain come from the server; with wrong ones
 * the signature is just not valid. Null if the allowance suffices. Throws CurvebookError `APPROVAL_NEEDED` for a token without such approvals.
 */
function approvalOf(
  { approval }: QuoteAnswer,
  { name, token, chainId, terms }: { name: string; token: Address; chainId: number; terms: Omit<PermitTerms, 'nonce'> },
): PermitTypedData | null {
  if (approval?.required !== true) return null;
  const { type, typedData } = approval;
  if ((type !== 'eip2612' && type !== 'dai') || typedData === null) {
    throw new CurvebookError('APPROVAL_NEEDED', `allow ${name} to Permit2 first: allowGasless`);
  }
  const { name: named, version } = typedData.domain;
  const domain = {
    ...(named === undefined ? {} : { name: String(named) }),
    ...(version === undefined ? {} : { version: String(version) }),
    ...{ chainId, verifyingContract: token },
  };
  return permitTypedData(type, domain, { ...terms, nonce: unitsOf(typedData.message.nonce) });
}

/** What a quote brings to be signed; asked for again where it is poor, since a block may have come between it and the prices that it is held against. */
async function fairly<T>(ask: () => Promise<T>): Promise<T> {
  for (let left = QUOTES - 1; ; left -= 1) {
    try {
      return await ask();
    } catch (error) {
      if (left === 0 || !(error instanceof CurvebookError) || error.code !== 'BAD_QUOTE') throw error;
    }
  }
}

/** An answer with the parts of a quote; what they say is checked where it is used. */
function asQuote(answer: unknown): QuoteAnswer {
  const { quote, permit2 } = Object(answer) as { quote?: unknown; permit2?: { typedData?: { message?: unknown } } };
  if (quote instanceof Object && permit2?.typedData?.message instanceof Object) return answer as QuoteAnswer;
  throw lied('lacks amounts or what to sign');
}

/** Base units that the server wrote. Throws CurvebookError `BAD_QUOTE`. */
function unitsOf(text: unknown): bigint {
  if (typeof text === 'string' && /^\d{1,78}$/.test(text)) return BigInt(text);
  throw lied(`says ${String(text).slice(0, 40)} for a whole number`);
}

const lied = (what: string): CurvebookError => new CurvebookError('BAD_QUOTE', `the quote is not signed: it ${what}`);

export type { Deployment, TrustedContracts, TrustedToken } from './deployment.js';
export type { Partnered } from './partner.js';
export type { Reader, Signer, TypedData } from './wallet.js';

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Whether the same request may be answered later: there was no answer, too many were asked, or the server had a fault. */
const isPassing = (error: unknown): boolean =>
  error instanceof CurvebookError &&
  (error.code === 'NO_ANSWER' || error.status === 429 || (error.status !== null && error.status >= 500));

const waitMsOf = (error: unknown): number =>
  Math.min(MOST_WAIT_MS, Math.max(POLL_MS, ((error as CurvebookError).retryAfterSec ?? 0) * 1_000));
