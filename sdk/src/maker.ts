import { priceToTicks, sizeToLots } from '../../core/market.js';
import { canonicalDecimal } from '../../core/wire/decimal.js';
import type { SourceLetter, WireAction, WireOrder } from '../../core/wire/types.js';
import { asDecimal, asUnits } from './amount.js';
import { asDeployment, marketOf, trusted, trustedToken } from './deployment.js';
import type { Deployment, TrustedContracts } from './deployment.js';
import { CurvebookError } from './errors.js';
import { createHttp } from './http.js';
import type { HttpOptions } from './http.js';
import { asSignal } from './listeners.js';
import { actionTypedData, agentTypedData } from './maker-signing.js';
import { ACTION_CODES, isUnsaid } from './outcome.js';
import { createReadClient } from './read/client.js';
import { verifyProof } from './verify/proof.js';
import type { ProvenBalance } from './verify/proof.js';
import { allow, asAddress, assertChain, callData, senderOf, splitSignature } from './wallet.js';
import type { Reader, Signer, TypedData } from './wallet.js';

/** An order. Price and size are exact decimals on the market's grid; nothing is rounded. */
export interface NewOrder {
  pair: string;
  side: 'buy' | 'sell';
  price: string;
  size: string;
  /** `Alo` by default. Both mean the same here: an order only rests in the book. */
  tif?: 'Gtc' | 'Alo';
  /** 0x and 32 hex digits, by which the order is found again when no answer came. */
  cloid?: string;
}

/** What became of one entry of a batch. An error `NO_ANSWER`: the answer does not say it, so that the entry may have been stored. */
export type EntryResult = { oid: number | null; error: null } | { oid: null; error: CurvebookError };

export interface MakerOptions extends HttpOptions {
  url: string;
  /** The maker. An agent of it can sign everything but deposits, withdrawals and the approval of agents. */
  signer: Signer;
  /** Needed for custody: reads allowances, and the decimals of tokens that are named by address. */
  reader?: Reader;
  /** Needed for custody: contracts and tokens that you know, or `'server'` to trust the server's. */
  contracts?: TrustedContracts | 'server';
  /** Unix milliseconds. */
  clock?: () => number;
}

export interface MakerClient {
  order(orders: readonly NewOrder[]): Promise<EntryResult[]>;
  modify(oid: number, order: NewOrder): Promise<EntryResult[]>;
  cancel(orders: readonly { pair: string; oid: number }[]): Promise<EntryResult[]>;
  cancelByCloid(orders: readonly { pair: string; cloid: string }[]): Promise<EntryResult[]>;
  /** Has the server close all orders at `timeMs`, at least 5 s from now. A later call replaces the time; null removes it. */
  scheduleCancel(timeMs: number | null): Promise<void>;
  /** Lets another key act for this maker, in everything but custody and agents. Signed for the chain of the deployment. */
  approveAgent(agent: string, name?: string): Promise<void>;
  /** Hash of the transaction. `amount` is an exact decimal in tokens; exactly so much is allowed to the custodian. `signal` ends it with its own reason before each transaction that it would ask for. */
  deposit(token: string, amount: string, signal?: AbortSignal): Promise<string>;
  requestWithdraw(token: string, amount: string): Promise<string>;
  executeWithdraw(token: string): Promise<string>;
  /** Balances of an account in the newest checkpoint, each proven against its root. Throws CurvebookError `BAD_PROOF`. */
  proof(account?: string): Promise<ProvenBalance[]>;
}

/**
 * Orders and custody of one maker. Each action is signed here, over the bytes that the server rebuilds. Throws CurvebookError `NO_ANSWER` where nothing
 * says whether an action was stored.
 */
export function createMakerClient(options: MakerOptions): MakerClient {
  const { url, signer, clock = Date.now } = options;
  const http = createHttp(url, options);
  const read = createReadClient(url, options);
  let deployment: Promise<Deployment> | null = null;
  let lastNonce = 0;

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

  function nextNonce(): number {
    lastNonce = Math.max(asWhole(Math.floor(clock()), 'what clock returns'), lastNonce + 1);
    return lastNonce;
  }

  async function send(action: object, nonce: number, data: TypedData): Promise<unknown> {
    const signature = splitSignature(await signer.signTypedData(data));
    const asked = http('/exchange', { method: 'POST', body: { action, nonce, signature } });
    const { body } = await asked.catch((error: unknown) => {
      throw isUnsaid(error, ACTION_CODES) ? unsaid(error) : error;
    });
    const { status, response } = (body ?? {}) as { status?: unknown; response?: unknown };
    if (status === 'ok') return response;
    if (status === 'err' && typeof response === 'string') throw refusal(response);
    throw unsaid();
  }

  async function act(action: WireAction): Promise<unknown> {
    const nonce = nextNonce();
    const { order_sources } = await known();
    return send(action, nonce, actionTypedData(action, nonce, sourceOf(order_sources)));
  }

  async function entries(action: WireAction, count: number): Promise<EntryResult[]> {
    const response = await act(action);
    const { data } = (response ?? {}) as { data?: { statuses?: unknown } | null };
    const statuses: readonly unknown[] = Array.isArray(data?.statuses) ? data.statuses : [];
    return Array.from({ length: count }, (_, i) => resultOf(statuses[i]));
  }

  async function wireOrder({ pair, side, price, size, tif = 'Alo', cloid }: NewOrder): Promise<WireOrder> {
    const isBuy = asOneOf(side, SIDES, 'side') === 'buy';
    const t = { limit: { tif: asOneOf(tif, TIFS, 'tif') } };
    const c = cloid === undefined ? {} : { c: asCloid(cloid) };
    const market = marketOf(await known(), pair);
    const [ticks, lots] = [
      priceToTicks(market, asDecimal(price, 'price')),
      sizeToLots(market, asDecimal(size, 'size')),
    ];
    if (ticks === null) throw new CurvebookError('off_tick', `${price} is no multiple of ${market.tickSize}`);
    if (lots === null) throw new CurvebookError('off_lot', `${size} is no multiple of ${market.lotSize}`);
    const [p, s] = [canonicalDecimal(price), canonicalDecimal(size)];
    if (p === null || s === null) throw new CurvebookError('BAD_ARGUMENT', `${price} or ${size} is no plain decimal`);
    return { a: market.asset, b: isBuy, p, s, r: false, t, ...c };
  }

  const assetOf = async (pair: string): Promise<number> => marketOf(await known(), pair).asset;

  async function custody(token: string) {
    const { contracts, reader } = options;
    if (contracts === undefined) {
      throw new CurvebookError('NO_CONTRACTS', 'custody needs `contracts`: addresses that you know, or "server"');
    }
    const said = await known();
    const { custodian } = trusted(said, contracts);
    const { chain_id: chainId } = said;
    // Before anything is read: a reader on another chain finds other contracts there, or none.
    await assertChain(signer, chainId);
    return { token: await trustedToken(said, token, { known: contracts, reader }), custodian, chainId };
  }

  return {
    async order(orders) {
      const list = await Promise.all(asList(orders).map(wireOrder));
      return entries({ type: 'order', orders: list, grouping: 'na' }, list.length);
    },
    async modify(oid, order) {
      const modified = { oid: asWhole(oid, 'oid'), order: await wireOrder(order) };
      return entries({ type: 'batchModify', modifies: [modified] }, 1);
    },
    async cancel(orders) {
      const cancels = await Promise.all(
        asList(orders).map(async ({ pair, oid }) => ({ a: await assetOf(pair), o: asWhole(oid, 'oid') })),
      );
      return entries({ type: 'cancel', cancels }, cancels.length);
    },
    async cancelByCloid(orders) {
      const cancels = await Promise.all(
        asList(orders).map(async ({ pair, cloid }) => ({ asset: await assetOf(pair), cloid: asCloid(cloid) })),
      );
      return entries({ type: 'cancelByCloid', cancels }, cancels.length);
    },
    async scheduleCancel(timeMs) {
      const time = timeMs === null ? {} : { time: asWhole(timeMs, 'timeMs') };
      await act({ type: 'scheduleCancel', ...time });
    },
    async approveAgent(agent, name = '') {
      if (typeof name !== 'string') throw new CurvebookError('BAD_ARGUMENT', 'the name of an agent is a string');
      const nonce = nextNonce();
      const said = await known();
      if (options.contracts !== undefined) trusted(said, options.contracts);
      const { chain_id: chainId } = said;
      const { action, data } = agentTypedData({ agent: asAddress(agent, 'agent'), name, nonce, chainId });
      await assertChain(signer, chainId);
      await send(action, nonce, data);
    },
    async deposit(name, amount, givenSignal = undefined) {
      const signal = asSignal(givenSignal);
      const { reader } = options;
      if (reader === undefined) throw new CurvebookError('CANNOT_READ', 'a deposit needs a reader of the chain');
      const { token, custodian, chainId } = await custody(name);
      const units = asUnits(amount, token, 'amount');
      await allow({ signer, reader, chainId }, { token: token.address, spender: custodian, units }, signal);
      signal?.throwIfAborted();
      const data = callData('deposit(address,uint256)', [token.address, units]);
      return senderOf(signer, chainId)({ to: custodian, data });
    },
    async requestWithdraw(name, amount) {
      const { token, custodian, chainId } = await custody(name);
      const units = asUnits(amount, token, 'amount');
      const data = callData('requestWithdraw(address,uint256)', [token.address, units]);
      return senderOf(signer, chainId)({ to: custodian, data });
    },
    async executeWithdraw(name) {
      const { token, custodian, chainId } = await custody(name);
      return senderOf(signer, chainId)({ to: custodian, data: callData('executeWithdraw(address)', [token.address]) });
    },
    async proof(account = signer.address) {
      const [said, proof] = [await known(), await read.proof(account)];
      return verifyProof(said, asAddress(account), proof);
    },
  };
}

const SIDES = ['buy', 'sell'] as const;
const TIFS = ['Gtc', 'Alo'] as const;

/** One of the words that an argument may be: in plain JavaScript it can be anything, and nothing else may pass for one of them. */
function asOneOf<T extends string>(value: unknown, words: readonly T[], what: string): T {
  const word = words.find((one) => one === value);
  if (word !== undefined) return word;
  throw new CurvebookError('BAD_ARGUMENT', `${what} is one of ${words.join(', ')}, not ${shown(value)}`);
}

function asWhole(value: unknown, what: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new CurvebookError('BAD_ARGUMENT', `${what} is a whole number, not ${shown(value)}`);
}

function asCloid(value: unknown): string {
  if (typeof value === 'string' && /^0x[0-9a-fA-F]{32}$/.test(value)) return value.toLowerCase();
  throw new CurvebookError('BAD_ARGUMENT', `cloid is 0x and 32 hex digits, not ${shown(value)}`);
}

function asList<T>(value: readonly T[]): readonly T[] {
  const list: unknown = value;
  if (Array.isArray(list) && list.every((one: unknown) => typeof one === 'object' && one !== null)) return value;
  throw new CurvebookError('BAD_ARGUMENT', 'a list of objects is needed');
}

const shown = (value: unknown): string => `${typeof value} ${String(value).slice(0, 40)}`;

/** Of the sources that the server takes actions from, the one to sign for. */
function sourceOf(sources: unknown): SourceLetter {
  const source = Array.isArray(sources) ? (['a', 'b'] as const).find((one) => sources.includes(one)) : undefined;
  if (source === undefined)
    throw new CurvebookError('HTTP_ERROR', 'the server names no source of orders that is known');
  return source;
}

/** `<code>: <text>`, as every refusal of the order interface is. */
function refusal(text: string): CurvebookError {
  const [, code = 'refused', message = text] = /^([a-z_]{1,40}): (.*)$/s.exec(text) ?? [];
  return new CurvebookError(code, message);
}

/** An answer that does not say whether the action was stored. */
const unsaid = (cause?: unknown): CurvebookError =>
  new CurvebookError('NO_ANSWER', 'the answer does not say what became of the action; it may have been stored', {
    cause,
  });

function resultOf(status: unknown): EntryResult {
  if (status === 'success') return { oid: null, error: null };
  const { error, resting } = (status ?? {}) as { error?: unknown; resting?: { oid?: unknown } | null };
  if (typeof error === 'string') return { oid: null, error: refusal(error) };
  const oid = resting?.oid;
  return typeof oid === 'number' ? { oid, error: null } : { oid: null, error: unsaid() };
}

export type { Deployment, TrustedContracts, TrustedToken } from './deployment.js';
export type { ProvenBalance } from './verify/proof.js';
export type { Reader, Signer, TypedData } from './wallet.js';
