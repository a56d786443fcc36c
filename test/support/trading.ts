/** What makers and takers of tests do. */
import type { ExchangeClient } from '@nktkas/hyperliquid';
import { accountOf, contractsOf, exchangeClient, tokenOf, until } from './stack.js';
import type { Stack } from './stack.js';

/** Asset id of the first market on the exchange wire. */
export const FIRST_ASSET = 10_000;

export interface Quote {
  isBuy: boolean;
  price: string;
  size: string;
}

/** Places resting orders in one batch and returns their ids. Throws when any of them is refused. */
export async function place(stack: Stack, role: string, quotes: readonly Quote[]): Promise<number[]> {
  return placeWith(exchangeClient(stack, role).exchange, quotes);
}

/** The same with a client at hand. */
export async function placeWith(exchange: ExchangeClient, quotes: readonly Quote[]): Promise<number[]> {
  const reply = await exchange.order({
    orders: quotes.map(({ isBuy, price, size }) => ({
      a: FIRST_ASSET,
      b: isBuy,
      p: price,
      s: size,
      r: false,
      t: { limit: { tif: 'Gtc' } },
    })),
    grouping: 'na',
  });
  return reply.response.data.statuses.map((status) => {
    if (typeof status !== 'object' || !('resting' in status)) throw new Error(JSON.stringify(status));
    return status.resting.oid;
  });
}

/** Waits until the curve on-chain takes that much. */
export async function untilQuoted(stack: Stack, tokenIn: string, tokenOut: string, amountIn: bigint): Promise<void> {
  const { entrypoint } = contractsOf(stack, 'taker1');
  const [from, to] = [tokenOf(stack, tokenIn).address, tokenOf(stack, tokenOut).address];
  await until(`a quote for ${amountIn} ${tokenIn}`, async () => (await entrypoint.quote(from, to, amountIn)) > 0n);
}

/** Swaps as soon as there is a quote, with 1 % slippage; returns the transaction's hash once it is mined. */
export async function swap(
  stack: Stack,
  role: string,
  tokenIn: string,
  tokenOut: string,
  amountIn: bigint,
): Promise<string> {
  const { entrypoint } = contractsOf(stack, role);
  const [from, to] = [tokenOf(stack, tokenIn).address, tokenOf(stack, tokenOut).address];
  await untilQuoted(stack, tokenIn, tokenOut, amountIn);
  const minimum = ((await entrypoint.quote(from, to, amountIn)) * 99n) / 100n;
  const head = await stack.provider.getBlock('latest');
  const deadline = (head?.timestamp ?? 0) + 60;
  const sent = await entrypoint.swap(from, to, amountIn, minimum, accountOf(stack, role).address, deadline);
  const receipt = await sent.wait();
  if (receipt === null) throw new Error('the swap was not mined');
  return receipt.hash;
}
