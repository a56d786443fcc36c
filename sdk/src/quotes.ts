/** Prices and quotes of swaps, checked against what the caller asked for and against the contract's own price before anything is signed. */
import { floorDiv, maxBig, minBig } from '../../core/amounts.js';
import { netUnits } from '../../core/swap/partner.js';
import { orderTypedData, permitTypedData } from '../../core/swap/typed-data.js';
import type { PermitStyle, PermitTerms, PermitTypedData, TokenDomain } from '../../core/swap/typed-data.js';
import type { Address, Token } from '../../core/types.js';
import { asUnits } from './amount.js';
import { trusted } from './deployment.js';
import type { Deployment, TrustedContracts } from './deployment.js';
import { CurvebookError } from './errors.js';
import type { createHttp } from './http.js';
import { askedOf, termsOf, type Partnered } from './partner.js';
import { callData, firstWord } from './wallet.js';
import type { Reader } from './wallet.js';

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

/** A swap by a transaction of the signer. Who brought it gets no part of it, and no hash goes with it: the entrypoint takes neither. */
export interface DirectSwap extends Omit<Swap, keyof Partnered> {
  partner?: never;
  appData?: never;
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

/** What a gasless order is signed with, and how its quote is named. */
export interface Signable {
  id: string;
  typed: ReturnType<typeof orderTypedData>;
  /** The approval to Permit2 that is signed before it; null where none is needed. */
  approval: PermitTypedData | null;
  /** Last second at which it may be executed. */
  validToSec: number;
}

interface QuoteDeps {
  http: ReturnType<typeof createHttp>;
  reader: Reader;
  contracts: TrustedContracts | 'server';
  /** Who swaps. */
  owner: Address;
  /** Unix milliseconds. */
  clock: () => number;
  /** What the server says of its deployment. */
  known(): Promise<Deployment>;
  /** A token by symbol or address, if it may be trusted. */
  tokenFor(said: Deployment, name: string): Promise<Token>;
  /** Told of a sold token of which Permit2 may not take enough. */
  onShort(token: Address): void;
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

const DAY_SEC = 86_400;
/** A quote whose order would be valid for longer than this is refused. */
const MAX_VALID_SEC = 3_600;
/** How often a quote is asked for that is not fair. */
const QUOTES = 3;
/** Of the amount, where the caller bounds no fee. */
const MAX_FEE_BPS = 100n;

/** The least that is taken of an amount quoted. */
export const least = (units: bigint, bps: number): bigint => floorDiv(units * BigInt(10_000 - bps), 10_000n);

/** What is asked of the server and of the contract before something is sent or signed. */
export function createQuotes(deps: QuoteDeps) {
  const { http, reader, owner, clock, known, tokenFor } = deps;

  async function terms({ sell, buy, amount, slippageBps = 50, minBuy, maxFee, ...partnered }: Swap) {
    if (!Number.isInteger(slippageBps) || slippageBps < 0 || slippageBps > 10_000) {
      throw new CurvebookError('BAD_ARGUMENT', 'slippageBps is a whole number from 0 to 10000');
    }
    const said = await known();
    const contracts = trusted(said, deps.contracts);
    const [sellToken, buyToken] = await Promise.all([tokenFor(said, sell), tokenFor(said, buy)]);
    const units = asUnits(amount, sellToken, 'amount');
    const wantedUnits = minBuy === undefined ? 0n : asUnits(minBuy, buyToken, 'minBuy');
    const maxFeeUnits =
      maxFee === undefined ? floorDiv(units * MAX_FEE_BPS, 10_000n) : asUnits(maxFee, sellToken, 'maxFee');
    const extra = termsOf(asPartnered(partnered));
    return { said, contracts, sellToken, buyToken, units, slippageBps, wantedUnits, maxFeeUnits, extra };
  }

  type Terms = Awaited<ReturnType<typeof gaslessTerms>>;
  /** The same for a swap by signature. Throws CurvebookError `NO_GASLESS` where no settler or no Permit2 may be trusted. */
  async function gaslessTerms(swap: Swap) {
    const asked = await terms(swap);
    const { orderSettler, permit2 } = asked.contracts;
    if (orderSettler === undefined || permit2 === undefined) {
      throw new CurvebookError('NO_GASLESS', 'no trusted settler and Permit2 for gasless swaps');
    }
    return { ...asked, name: swap.sell, orderSettler, permit2 };
  }

  async function quoteOf(
    { said, sellToken, buyToken, units, extra }: Terms,
    how: object,
    signal: AbortSignal | undefined,
  ): Promise<QuoteAnswer> {
    const body = {
      ...{ chainId: said.chain_id, from: owner, sellToken: sellToken.address, buyToken: buyToken.address },
      ...{ kind: 'sell', sellAmountBeforeFee: units.toString(), signingScheme: 'eip712' },
      ...how,
      ...askedOf(extra),
    };
    return asQuote((await http('/api/v1/quote', { method: 'POST', body, signal })).body);
  }

  /** Built here, from what was asked for and what was checked: of the server's only nonces are signed, and the names in the token's own domain. */
  function signable(
    answer: QuoteAnswer,
    { said, name, sellToken, buyToken, units, extra, orderSettler, permit2 }: Terms,
    { minBuyUnits, validToSec }: { minBuyUnits: bigint; validToSec: number },
  ): Signable {
    const typed = orderTypedData(
      {
        ...{ sellToken: sellToken.address, sellUnits: units, validToSec, receiver: owner },
        ...{ buyToken: buyToken.address, minBuyUnits, ...extra },
        nonce: unitsOf(answer.permit2.typedData.message.nonce),
      },
      { chainId: said.chain_id, permit2, spender: orderSettler },
    );
    const approval = neededApproval(answer, {
      ...{ name, token: sellToken.address, chainId: said.chain_id },
      terms: { owner, spender: permit2, deadlineSec: validToSec },
    });
    return { id: answer.id, typed, approval, validToSec };
  }

  /** What the contract would pay, in base units of `buy`. */
  async function quoted(entrypoint: Address, sell: Address, buy: Address, units: bigint): Promise<bigint> {
    const data = callData('quoteFor(address,address,address,uint256)', [owner, sell, buy, units]);
    return firstWord(await reader.call({ to: entrypoint, data, from: owner }));
  }

  /**
   * Builds the typed data itself, from what the caller asked for: of the server's answer only the nonce, the deadline and the minimum are signed, and
   * these are checked. The minimum is compared with the contract's price before and after the quote, since a block may come between; the lower
   * price counts.
   */
  async function gasless(swap: Swap, signal?: AbortSignal): Promise<Signable & { quote: GaslessQuote }> {
    const asked = await gaslessTerms(swap);
    const { contracts, sellToken, buyToken, units, slippageBps, wantedUnits, maxFeeUnits, extra } = asked;
    const priced = (): Promise<bigint> => quoted(contracts.entrypoint, sellToken.address, buyToken.address, units);
    const before = await priced();
    if (before === 0n && wantedUnits === 0n) {
      throw new CurvebookError(
        'NO_MINIMUM',
        `the contract quotes nothing for ${swap.amount} ${swap.sell}: give minBuy`,
      );
    }
    const answer = await quoteOf(asked, { slippageBps }, signal);
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
    const signed = signable(answer, asked, { minBuyUnits, validToSec: validTo });
    const buyUnits = unitsOf(amounts.buyAmount);
    const expiresMs = Date.parse(answer.expiration);
    const quote: GaslessQuote = {
      ...{ sellUnits, buyUnits, minBuyUnits, feeUnits, expiresMs, validToSec: validTo },
      signsApproval: signed.approval !== null,
    };
    return { ...signed, quote };
  }

  /** Nothing of the server's is signed but a nonce: the amounts and the time are those that were asked for. */
  async function limited({ validForSec = DAY_SEC, ...swap }: LimitSwap, signal?: AbortSignal): Promise<Signable> {
    if (!Number.isInteger(validForSec) || validForSec < 60 || validForSec > 30 * DAY_SEC) {
      throw new CurvebookError('BAD_ARGUMENT', 'validForSec is a whole number from 60 to 2592000');
    }
    const asked = await gaslessTerms(swap);
    const { units, wantedUnits } = asked;
    if (wantedUnits <= 0n) throw new CurvebookError('BAD_ARGUMENT', 'minBuy is above zero');
    const validToSec = Math.floor(clock() / 1_000) + validForSec;
    const how = { orderClass: 'limit', minBuyAmount: wantedUnits.toString(), validTo: validToSec };
    const answer = await quoteOf(asked, how, signal);
    const { sellAmount, minBuyAmount, validTo } = answer.quote;
    if (unitsOf(sellAmount) !== units) throw lied(`sells ${sellAmount} base units, not ${units}`);
    if (unitsOf(minBuyAmount) !== wantedUnits) throw lied(`buys ${minBuyAmount} base units, not ${wantedUnits}`);
    if (validTo !== validToSec) throw lied(`may be executed until ${validTo}, not ${validToSec}`);
    return signable(answer, asked, { minBuyUnits: wantedUnits, validToSec });
  }

  /** As `approvalOf`, and says which token is to be allowed by a transaction. */
  function neededApproval(...[answer, of]: Parameters<typeof approvalOf>): PermitTypedData | null {
    try {
      return approvalOf(answer, of);
    } catch (error) {
      if (error instanceof CurvebookError && error.code === 'APPROVAL_NEEDED') deps.onShort(of.token);
      throw error;
    }
  }

  return {
    ...{ terms, quoted, limited },
    gasless: (swap: Swap, signal?: AbortSignal) => fairly(() => gasless(swap, signal)),
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
  const { domain: said, message } = Object(typedData) as { domain?: unknown; message?: unknown };
  if (!(said instanceof Object) || !(message instanceof Object)) throw lied('lacks the approval to sign');
  const { name: named, version } = said as TokenDomain;
  const domain = {
    ...(named === undefined ? {} : { name: String(named) }),
    ...(version === undefined ? {} : { version: String(version) }),
    ...{ chainId, verifyingContract: token },
  };
  return permitTypedData(type, domain, { ...terms, nonce: unitsOf((message as { nonce?: unknown }).nonce) });
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

/** Types do not hold it in plain JavaScript, where a partner whose part is misspelt would get nothing. */
function asPartnered({ partner, appData }: Partnered): Partnered {
  if (
    partner !== undefined &&
    (typeof partner !== 'object' || (partner as unknown) === null || partner.bps === undefined)
  )
    throw new CurvebookError('BAD_ARGUMENT', 'partner is an address and bps');
  if (appData !== undefined && typeof appData !== 'string')
    throw new CurvebookError('BAD_ARGUMENT', 'appData is 32 bytes as hex');
  return { partner, appData };
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
