/** What makers and takers do while the server's processes are killed: they record every acknowledgement, and repeat what failed. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Wallet, isError } from 'ethers';
import { IOrderSettler__factory } from '../../../typechain-types/index.js';
import { accountOf, contractsOf, exchangeClient, tokenOf } from '../stack.js';
import type { Stack } from '../stack.js';
import { signQuote, type OrderAnswer, type QuoteAnswer } from '../swap-stack.js';
import { FIRST_ASSET, placeWith, swap } from '../trading.js';
import { micros, wei } from '../audit.js';

/** What was acknowledged to a maker. An order or a cancel that was sent and not answered is in none of the lists. */
export interface Promised {
  placed: Set<number>;
  cancelSent: Set<number>;
  canceled: Set<number>;
}

export const nothingPromised = (): Promised => ({ placed: new Set(), cancelSent: new Set(), canceled: new Set() });

/** How an act goes on and when it ends. */
export interface Pace {
  signal: AbortSignal;
  /** How many swaps an actor may have made by now. */
  quota(): number;
}

/** Pauses of a maker between two acts, and most of its orders, so that limits on open orders are not reached. */
const ORDER_PACE_MS = 60;
const MAX_OPEN = 600;
const RETRY_MS = 200;
const SWAP_PACE_MS = 300;

const pause = (ms: number, { signal }: Pick<Pace, 'signal'>): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);

/**
 * A maker that places one order after the other far from the market, and cancels most of them. An action that fails because the server is down or not
 * ready was not acknowledged.
 */
export async function stream(
  stack: Stack,
  role: string,
  promised: Promised,
  pace: Pick<Pace, 'signal'>,
): Promise<void> {
  const { exchange } = exchangeClient(stack, role);
  for (let count = 0; !pace.signal.aborted; count += 1) {
    await pause(ORDER_PACE_MS, pace);
    try {
      const quote = { isBuy: true, price: `${1_000 + (count % 500)}`, size: '0.02' };
      const [oid = 0] = await placeWith(exchange, [quote]);
      promised.placed.add(oid);
      if (count % 4 === 0 && promised.placed.size - promised.cancelSent.size < MAX_OPEN) continue;
      promised.cancelSent.add(oid);
      await exchange.cancel({ cancels: [{ a: FIRST_ASSET, o: oid }] });
      promised.canceled.add(oid);
    } catch {
      await pause(RETRY_MS, pace);
    }
  }
}

/** Sells and buys small amounts. A curve may expire under a swap, or be gone for as long as its poster is. */
export async function trade(stack: Stack, role: string, pace: Pace): Promise<void> {
  for (let done = 0; !pace.signal.aborted; await pause(SWAP_PACE_MS, pace)) {
    if (done >= pace.quota()) continue;
    const sell = () => swap(stack, role, 'WETH', 'USDC', wei('0.123456789012345678'));
    const buy = () => swap(stack, role, 'USDC', 'WETH', micros('400.000001'));
    try {
      await (done % 2 === 0 ? sell() : buy());
      done += 1;
    } catch {
      await pause(RETRY_MS, pace);
    }
  }
}

/** Asks for a little, and takes what was settled, so that settlements and executions are under way when processes die. */
export async function withdraw(stack: Stack, role: string): Promise<void> {
  await takeSettled(stack, role);
  const usdc = tokenOf(stack, 'USDC').address;
  await (await contractsOf(stack, role).custodian.requestWithdraw(usdc, 1_000_001n)).wait();
}

/** Executes the claim once it may be: what was asked for beside it is settled then. */
export async function takeSettled(stack: Stack, role: string): Promise<void> {
  const { custodian } = contractsOf(stack, role);
  const usdc = tokenOf(stack, 'USDC').address;
  const claim = () => custodian.claim(accountOf(stack, role).address, usdc);
  const [amount, readyAt] = await claim();
  const head = await stack.provider.getBlock('latest');
  if (amount > 0n && readyAt <= BigInt(head?.timestamp ?? 0)) {
    const executed = await custodian.executeWithdraw(usdc, { gasLimit: 500_000n });
    await executed.wait().catch(async (error: unknown) => {
      // A settlement was mined in front of it and lets the whole claim wait anew: it is executed another time.
      if (!isError(error, 'CALL_EXCEPTION') || (await claim())[1] <= readyAt) throw error;
    });
  }
}

/** The swap API as a taker sees it. Rejects with `Refused` for what the server decided, otherwise for what was not answered. */
async function call<T>(stack: Stack, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${stack.manifest.serverUrl}/api/v1${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as T;
  if (response.status >= 400 && response.status < 500 && response.status !== 429)
    throw new Refused(JSON.stringify(answer));
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

class Refused extends Error {}

/**
 * A taker without gas that signs one order after the other. An order whose answer was lost is sent again under the same name until it is
 * answered, also after the end of `pace`. Returns the ids of all orders that were accepted.
 */
export async function signOrders(stack: Stack, role: string, pace: Pace): Promise<string[]> {
  const wallet = new Wallet(accountOf(stack, role).privateKey);
  const accepted: string[] = [];
  for (let turn = 0; !pace.signal.aborted; await pause(SWAP_PACE_MS, pace)) {
    if (accepted.length >= pace.quota()) continue;
    turn += 1;
    try {
      const [sell, buy, amount] =
        turn % 2 === 0 ? (['WETH', 'USDC', wei('0.1')] as const) : (['USDC', 'WETH', micros('250.000001')] as const);
      const quote = await call<QuoteAnswer>(stack, 'POST', '/quote', {
        chainId: stack.manifest.chainId,
        from: wallet.address,
        sellToken: tokenOf(stack, sell).address,
        buyToken: tokenOf(stack, buy).address,
        kind: 'sell',
        sellAmountBeforeFee: amount.toString(),
        signingScheme: 'eip712',
      });
      accepted.push(await submit(stack, quote, await signQuote(quote, wallet)));
    } catch {
      await pause(RETRY_MS, pace);
    }
  }
  return accepted;
}

/** Longest time that a server may take to come back. */
const SUBMIT_MS = 300_000;

async function submit(stack: Stack, { id: quoteId }: QuoteAnswer, signature: string): Promise<string> {
  const body = { quoteId, signature, clientOrderId: randomUUID() };
  for (const deadlineMs = Date.now() + SUBMIT_MS; ; await delay(RETRY_MS)) {
    try {
      return (await call<{ orderId: string }>(stack, 'POST', '/orders', body)).orderId;
    } catch (error) {
      if (error instanceof Refused || Date.now() > deadlineMs) throw error;
    }
  }
}

/** An order of the swap API as it stands. */
export const orderNow = (stack: Stack, id: string): Promise<OrderAnswer> =>
  call<OrderAnswer>(stack, 'GET', `/orders/${id}`);

/** Every order that the settler ever filled, as the chain tells it, in the words of the API. */
export async function filledOnChain(
  stack: Stack,
): Promise<Pick<OrderAnswer, 'txHash' | 'executedSellAmount' | 'executedBuyAmount'>[]> {
  const settler = IOrderSettler__factory.connect(stack.manifest.contracts['orderSettler']!, stack.provider);
  return (await settler.queryFilter(settler.filters.OrderFilled(), 0)).map(({ transactionHash, args }) => ({
    txHash: transactionHash as `0x${string}`,
    executedSellAmount: args.amountIn.toString(),
    executedBuyAmount: args.amountOut.toString(),
  }));
}
