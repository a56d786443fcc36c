/** The swap API of a whole server beside a bare Koa route with one commit, in interleaved rounds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Wallet } from 'ethers';
import type { OrderTypedData } from '../../core/swap/typed-data.js';
import { startChild, type Child } from '../../test/support/child.js';
import { accountOf, startStack, tokenOf, type Stack } from '../../test/support/stack.js';
import { place, untilQuoted } from '../../test/support/trading.js';
import { median, ROUNDS } from '../gateway/measure.js';
import { latencyMs, load, type Loaded, type Target } from './load.js';
import { fundedOwner } from './owners.js';

const QUOTES = 320;
const SUBMISSIONS = 60;
const PLENTY = '1000000';
/** All roles but the executor, which would fill the submitted orders; its work is measured as gas. */
const ROLES = 'watcher,gateway,poster,settler';
const UNIT = 10n ** 18n;
const PROBE = (UNIT * 3n) / 2n;
/** More than the submissions of a round sell of either token. */
const FUNDS = { WETH: 100n * UNIT, USDC: 250_000n * 10n ** 6n };

/** Medians over the rounds; rates by the clock, of 32 requests at a time. */
export interface HttpFigures {
  quotesPerSec: number;
  bareForQuotesPerSec: number;
  quoteCpuUs: number;
  bareCpuUs: number;
  /** Each alone. */
  quoteMs: number;
  submitMs: number;
  bareMs: number;
  /** 32 at a time. */
  submitsPerSec: number;
  barePerSec: number;
}

interface Bench {
  stack: Stack;
  bare: Target;
  swap: (path: string) => Target;
}

/** Starts a chain, a server and the bare route, each in a process of its own, on SQLite, or where `databaseUrl` says. */
export async function measureHttp(databaseUrl: (name: string) => string): Promise<HttpFigures> {
  const env = { SWAP_QUOTES_PER_MINUTE: PLENTY, SWAP_OWNER_QUOTES_PER_MINUTE: PLENTY, SWAP_ORDERS_PER_MINUTE: PLENTY };
  const stack = await startStack({
    databaseUrl: databaseUrl('server'),
    blockTimeMs: 2_000,
    processes: [ROLES],
    pools: true,
    env,
  });
  let bareChild: Child | null = null;
  try {
    await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    await place(stack, 'maker1', [
      { isBuy: false, price: '2500.1', size: '40' },
      { isBuy: true, price: '2499.9', size: '40' },
    ]);
    await untilQuoted(stack, 'WETH', 'USDC', PROBE);
    bareChild = startChild('bench/swap/bare.ts', [databaseUrl('bare')]);
    const port = (await bareChild.line((line) => line.startsWith('port '), 30_000)).slice('port '.length);
    const { serverUrl } = stack.manifest;
    return await rounds({
      stack,
      bare: { url: `http://127.0.0.1:${port}/row`, pid: bareChild.process.pid ?? 0 },
      swap: (path) => ({ url: `${serverUrl}/api/v1${path}`, pid: stack.pid(ROLES) }),
    });
  } finally {
    await bareChild?.end('SIGTERM');
    await stack.close();
  }
}

async function rounds(bench: Bench): Promise<HttpFigures> {
  const results: HttpFigures[] = [];
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) results.push(await oneRound(bench));
  const counted = results.slice(1);
  const names = Object.keys(results[0]!) as (keyof HttpFigures)[];
  const figures = names.map((name) => [name, median(counted.map((one) => one[name]))]);
  return Object.fromEntries(figures);
}

/** A round's owner is new: its orders stay pending, since nothing executes them. */
async function oneRound({ stack, bare, swap }: Bench): Promise<HttpFigures> {
  const wallet = await fundedOwner(stack, FUNDS);
  const bodies = quoteBodies(stack, wallet.address, QUOTES);
  const bareQuotes = await load(bare, bodies);
  const quoted = await load(swap('/quote'), bodies);
  const quoteMs = await latencyMs(swap('/quote').url, bodies.slice(0, SUBMISSIONS));
  const submissions = await Promise.all(quoted.answers.slice(0, 2 * SUBMISSIONS).map((text) => signed(text, wallet)));
  const alone = submissions.slice(0, SUBMISSIONS);
  const bareMs = await latencyMs(bare.url, alone);
  const submitMs = await latencyMs(swap('/orders').url, alone);
  const many = submissions.slice(SUBMISSIONS);
  const bareMany: Loaded = await load(bare, many);
  const submitted = await load(swap('/orders'), many);
  return {
    quotesPerSec: quoted.perSec,
    bareForQuotesPerSec: bareQuotes.perSec,
    quoteCpuUs: quoted.cpuUs,
    bareCpuUs: bareQuotes.cpuUs,
    quoteMs,
    submitMs,
    bareMs,
    submitsPerSec: submitted.perSec,
    barePerSec: bareMany.perSec,
  };
}

/** Sales and purchases, both ways, of amounts that differ. */
function quoteBodies(stack: Stack, from: string, count: number): string[] {
  const [weth, usdc] = [tokenOf(stack, 'WETH').address, tokenOf(stack, 'USDC').address];
  return Array.from({ length: count }, (_, index) => {
    const base = UNIT / 2n + (BigInt(index) * UNIT) / 400n;
    const quoteUnits = (base * 2_500n) / 10n ** 12n;
    const sellsBase = index % 2 === 0;
    const isSell = index % 4 < 2;
    const amount = (isSell === sellsBase ? base : quoteUnits).toString();
    return JSON.stringify({
      chainId: stack.manifest.chainId,
      from,
      sellToken: sellsBase ? weth : usdc,
      buyToken: sellsBase ? usdc : weth,
      kind: isSell ? 'sell' : 'buy',
      ...(isSell ? { sellAmountBeforeFee: amount } : { buyAmountAfterFee: amount }),
      signingScheme: 'eip712',
    });
  });
}

async function signed(text: string, wallet: Wallet): Promise<string> {
  const { id, permit2 } = JSON.parse(text) as { id: string; permit2: { typedData: OrderTypedData } };
  const { domain, types, message } = permit2.typedData;
  const { EIP712Domain: _, ...rest } = types;
  return JSON.stringify({ quoteId: id, signature: await wallet.signTypedData(domain, rest, message) });
}

/** SQLite files in a folder of their own; `drop` deletes them. */
export function temporaryDatabases(): { urlOf(name: string): string; drop(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-bench-'));
  return {
    urlOf: (name) => `sqlite:${join(folder, `${name}.sqlite`)}`,
    drop: () => rmSync(folder, { recursive: true }),
  };
}
