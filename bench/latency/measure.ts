/** Measures the time from a block to the frames about it, on a stack of separate processes, and the CPU time of that stack while nothing happens. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Wallet } from 'ethers';
import { WebSocket } from 'ws';
import { openDb } from '../../ledger/db/db.js';
import { lastGeneration } from '../../ledger/chain/ledger-log.js';
import type { Db } from '../../ledger/types.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import { accountOf, startStack, tokenOf, until, type Stack } from '../../test/support/stack.js';
import { place, untilQuoted } from '../../test/support/trading.js';

/** A way in which processes learn of blocks and commits, as their settings. */
export interface Mode {
  name: string;
  env: Record<string, string>;
}

interface Setup {
  databaseUrl: string;
  /** Roles of each process. */
  processes: readonly string[];
  mode: Mode;
  swaps: number;
  idleMs: number;
}

export interface Latencies {
  /** From the block to the commit of its generation, and to the frame that tells a maker of its fill. */
  commitMs: number[];
  frameMs: number[];
  /** CPU seconds of all server processes in a minute without orders and swaps. */
  idleCpuSec: number;
}

/** Long enough for every process to be done with a block before the next one comes. */
const BLOCK_TIME_MS = 1_000;
const AMOUNT_IN = 10n ** 13n;
const LONGEST_MS = 20_000;
/** Pause between two looks for the generation of a block; what a look adds is part of what is measured. */
const LOOK_MS = 4;
/** Wait after the start of the processes, until their start-up work is done. */
const CALM_MS = 5_000;

interface Heads {
  /** When the chain told of each block, by number. */
  seenMs: Map<number, number>;
  close(): void;
}

/** Notes when the chain announces each block. It announces a block to all subscribers, the measured processes among them, at the same time. */
async function watchHeads(rpcUrl: string): Promise<Heads> {
  const socket = new WebSocket(rpcUrl.replace(/^http/, 'ws'));
  const seenMs = new Map<number, number>();
  socket.on('message', (data: Buffer) => {
    const head = (JSON.parse(data.toString()) as { params?: { result?: { number: string } } }).params?.result;
    if (head !== undefined) seenMs.set(Number.parseInt(head.number, 16), performance.now());
  });
  await new Promise<void>((resolve, reject) => socket.once('open', () => resolve()).once('error', reject));
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }));
  return { seenMs, close: () => socket.close() };
}

/** When each fill of the maker was told, by the hash of its transaction. */
async function watchFills(stack: Stack, role: string): Promise<{ seenMs: Map<string, number>; close(): void }> {
  const socket = new WebSocket(`${stack.manifest.serverUrl.replace(/^http/, 'ws')}/ws`);
  const seenMs = new Map<string, number>();
  socket.on('message', (data: Buffer) => {
    const nowMs = performance.now();
    const frame = JSON.parse(data.toString()) as { channel: string; data: { fills?: { hash: string }[] } };
    if (frame.channel !== 'userFills') return;
    for (const { hash } of frame.data.fills ?? []) if (!seenMs.has(hash)) seenMs.set(hash, nowMs);
  });
  await new Promise<void>((resolve, reject) => socket.once('open', () => resolve()).once('error', reject));
  const subscription = { type: 'userFills', user: accountOf(stack, role).address };
  socket.send(JSON.stringify({ method: 'subscribe', subscription }));
  return { seenMs, close: () => socket.close() };
}

async function committedMs(db: Db, block: number): Promise<number> {
  const deadlineMs = performance.now() + LONGEST_MS;
  for (;;) {
    const head = await lastGeneration(db.reads);
    const nowMs = performance.now();
    if (head !== null && head.toBlock >= block) return nowMs;
    if (nowMs > deadlineMs) throw new Error(`no generation of block ${block} in ${LONGEST_MS} ms`);
    await delay(LOOK_MS);
  }
}

/** CPU time of running processes, in seconds. */
function cpuSec(pids: readonly number[]): number {
  const ticksPerSec = Number.parseInt(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }), 10);
  const ticks = pids.map((pid) => {
    // What stands in brackets is a name, which may have spaces in it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return Number.parseInt(fields[11]!, 10) + Number.parseInt(fields[12]!, 10);
  });
  return ticks.reduce((sum, one) => sum + one, 0) / ticksPerSec;
}

async function idleCpu(stack: Stack, idleMs: number): Promise<number> {
  if (idleMs === 0) return Number.NaN;
  await delay(CALM_MS);
  const pids = stack.processes.map((one) => stack.pid(one));
  const [beforeSec, beforeMs] = [cpuSec(pids), performance.now()];
  await delay(idleMs);
  return ((cpuSec(pids) - beforeSec) * 60_000) / (performance.now() - beforeMs);
}

/** Starts the stack, lets it idle, then has a taker swap in block after block while a maker listens. */
export async function measureLatency({ databaseUrl, processes, mode, swaps, idleMs }: Setup): Promise<Latencies> {
  const stack = await startStack({ databaseUrl, processes, blockTimeMs: BLOCK_TIME_MS, env: mode.env });
  const db = await openDb(databaseUrl);
  const { rpcUrl } = stack.manifest;
  const closing: (() => void)[] = [];
  try {
    const idleCpuSec = await idleCpu(stack, idleMs);
    const heads = await watchHeads(rpcUrl);
    closing.push(heads.close);
    await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
    await until('the maker to be let in', () =>
      place(stack, 'maker1', [
        { isBuy: true, price: '2499', size: '10' },
        { isBuy: false, price: '2501', size: '10' },
      ]).then(
        () => true,
        () => false,
      ),
    );
    await untilQuoted(stack, 'WETH', 'USDC', AMOUNT_IN);
    const told = await watchFills(stack, 'maker1');
    closing.push(told.close);
    const latencies: Latencies = { commitMs: [], frameMs: [], idleCpuSec };
    const taker = accountOf(stack, 'taker1');
    const entrypoint = Entrypoint__factory.connect(
      stack.manifest.contracts.entrypoint,
      new Wallet(taker.privateKey, stack.provider),
    );
    const [from, to] = [tokenOf(stack, 'WETH').address, tokenOf(stack, 'USDC').address];
    for (let i = 0; i < swaps; i += 1) {
      await untilQuoted(stack, 'WETH', 'USDC', AMOUNT_IN);
      const deadline = ((await stack.provider.getBlock('latest'))?.timestamp ?? 0) + 60;
      const head = Math.max(0, ...heads.seenMs.keys());
      const sent = await entrypoint.swap(from, to, AMOUNT_IN, 0n, taker.address, deadline, { gasLimit: 1_000_000 });
      while (!heads.seenMs.has(head + 1)) await delay(1);
      const block = head + 1;
      const commitMs = await committedMs(db, block);
      const receipt = await stack.provider.getTransactionReceipt(sent.hash);
      // The swap came too late for this block, or failed since its curve was just replaced.
      if (receipt?.blockNumber !== block || receipt.status !== 1) continue;
      await until('the frame', () => Promise.resolve(told.seenMs.has(sent.hash)), LONGEST_MS);
      latencies.commitMs.push(commitMs - heads.seenMs.get(block)!);
      latencies.frameMs.push(told.seenMs.get(sent.hash)! - heads.seenMs.get(block)!);
    }
    return latencies;
  } finally {
    for (const close of closing) close();
    await db.close();
    await stack.close();
  }
}
