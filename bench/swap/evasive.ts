/** How long submissions of a key's owner take while accounts with code submit, whose check burns all the gas that it gets. */
import { parseUnits, type Wallet } from 'ethers';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import { accountOf, startStack, tokenOf, type Stack } from '../../test/support/stack.js';
import { place, untilQuoted } from '../../test/support/trading.js';
import { median } from '../gateway/measure.js';
import { timesMs, whileSent } from './load.js';
import { fundedOwner } from './owners.js';

/** Accounts that submit as often as one client address may by default: once in so many milliseconds. */
const EVASIVE = 10;
const EVERY_MS = 1_000;
const SUBMISSIONS = 100;
/** Slices of either kind, in turn; the first of each warms up. */
const SLICES = 5;
const PLENTY = '1000000';
/** Hashes half a megabyte, for 600,000 gas, and fails: that takes a development chain no longer than any other node, unlike a long loop. */
const WASTEFUL = '0x6207a1205f20fe';
const UNITS = parseUnits('0.02', 18);

export interface EvasiveFigures {
  /** Of a submission, in milliseconds: medians over the slices. */
  aloneP99Ms: number;
  besideP99Ms: number;
  /** Submissions of accounts with code that were answered, per second. */
  evasivePerSec: number;
}

/** Starts a chain and a server, each in a process of its own. Quotes live long enough for one to be submitted again and again. */
export async function measureEvasive(databaseUrl: string): Promise<EvasiveFigures> {
  const env = {
    ...{ SWAP_QUOTES_PER_MINUTE: PLENTY, SWAP_OWNER_QUOTES_PER_MINUTE: PLENTY, SWAP_ORDERS_PER_MINUTE: PLENTY },
    ...{ SWAP_QUOTE_TTL_SEC: '600', SWAP_ORDER_TTL_SEC: '600' },
  };
  const stack = await startStack({
    databaseUrl,
    blockTimeMs: 2_000,
    processes: ['watcher,gateway,poster,settler'],
    env,
  });
  try {
    await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    await place(stack, 'maker1', [
      { isBuy: false, price: '2500.1', size: '40' },
      { isBuy: true, price: '2499.9', size: '40' },
    ]);
    await untilQuoted(stack, 'WETH', 'USDC', UNITS);
    const bodies = await evasiveBodies(stack);
    const url = `${stack.manifest.serverUrl}/api/v1/orders`;
    const slices: EvasiveFigures[] = [];
    for (let slice = 0; slice < SLICES; slice++) {
      const alone = await submissions(stack);
      const aloneP99Ms = p99(await timesMs(url, alone));
      const beside = await submissions(stack);
      const { result, perSec } = await whileSent(url, bodies, EVERY_MS, () => timesMs(url, beside));
      slices.push({ aloneP99Ms, besideP99Ms: p99(result), evasivePerSec: perSec });
    }
    const of = (name: keyof EvasiveFigures): number => median(slices.slice(1).map((one) => one[name]));
    return { aloneP99Ms: of('aloneP99Ms'), besideP99Ms: of('besideP99Ms'), evasivePerSec: of('evasivePerSec') };
  } finally {
    await stack.close();
  }
}

const p99 = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1]!;

/** Orders of a new owner, who may have so many pending. */
async function submissions(stack: Stack): Promise<string[]> {
  const owner = await fundedOwner(stack, { WETH: BigInt(SUBMISSIONS) * UNITS });
  return Promise.all(Array.from({ length: SUBMISSIONS }, () => signedQuote(stack, owner)));
}

/** One order each of accounts that get their code once they have their quote. */
async function evasiveBodies(stack: Stack): Promise<string[]> {
  const bodies: string[] = [];
  for (let i = 0; i < EVASIVE; i++) {
    const owner = await fundedOwner(stack, { WETH: UNITS });
    bodies.push(await signedQuote(stack, owner));
    await stack.provider.send('hardhat_setCode', [owner.address, WASTEFUL]);
  }
  return bodies;
}

async function signedQuote(stack: Stack, owner: Wallet): Promise<string> {
  const { manifest } = stack;
  const response = await fetch(`${manifest.serverUrl}/api/v1/quote`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ chainId: manifest.chainId, from: owner.address, kind: 'sell', signingScheme: 'eip712' },
      sellToken: tokenOf(stack, 'WETH').address,
      buyToken: tokenOf(stack, 'USDC').address,
      sellAmountBeforeFee: UNITS.toString(),
    }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`a quote: ${response.status} ${text.slice(0, 300)}`);
  const { id, permit2 } = JSON.parse(text) as { id: string; permit2: { typedData: OrderTypedData } };
  const { domain, types, message } = permit2.typedData;
  const { EIP712Domain: _, ...rest } = types;
  return JSON.stringify({ quoteId: id, signature: await owner.signTypedData(domain, rest, message) });
}
