/** How long submissions of a key's owner take while accounts with code submit, whose check burns all the gas that it gets. */
import { Contract, MaxUint256, Wallet, parseUnits } from 'ethers';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import { mined } from '../../deploy/transactions.js';
import { accountOf, startStack, tokenOf, type Stack } from '../../test/support/stack.js';
import { place, untilQuoted } from '../../test/support/trading.js';
import { median } from '../gateway/measure.js';
import { timesMs, whileSent } from './load.js';

/** Accounts that submit as often as one client address may by default: once in so many milliseconds. */
const EVASIVE = 10;
const EVERY_MS = 1_000;
const SUBMISSIONS = 100;
/** Slices of either kind, in turn; the first of each warms up. */
const SLICES = 5;
const PLENTY = '1000000';
const ERC20 = ['function transfer(address, uint256)', 'function approve(address, uint256)'];
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
    ...{ SWAP_QUOTES_PER_MINUTE: PLENTY, SWAP_ORDERS_PER_MINUTE: PLENTY },
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
  const owner = await fundedOwner(stack, BigInt(SUBMISSIONS));
  return Promise.all(Array.from({ length: SUBMISSIONS }, () => signedQuote(stack, owner)));
}

/** One order each of accounts that get their code once they have their quote. */
async function evasiveBodies(stack: Stack): Promise<string[]> {
  const bodies: string[] = [];
  for (let i = 0; i < EVASIVE; i++) {
    const owner = await fundedOwner(stack, 1n);
    bodies.push(await signedQuote(stack, owner));
    await stack.provider.send('hardhat_setCode', [owner.address, WASTEFUL]);
  }
  return bodies;
}

/** A new key with what so many orders sell, of which Permit2 may take all. */
async function fundedOwner(stack: Stack, orders: bigint): Promise<Wallet> {
  const { provider, manifest } = stack;
  const from = new Wallet(accountOf(stack, 'taker1').privateKey, provider);
  const weth = new Contract(tokenOf(stack, 'WETH').address, ERC20, from);
  const owner = new Wallet(Wallet.createRandom().privateKey, provider);
  await provider.send('hardhat_setBalance', [owner.address, '0x8ac7230489e80000']);
  await mined(weth.getFunction('transfer').send(owner.address, orders * UNITS));
  const approve = (weth.connect(owner) as Contract).getFunction('approve');
  await mined(approve.send(manifest.contracts['permit2'], MaxUint256));
  return owner;
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
