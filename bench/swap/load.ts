/** Requests over connections that stay open. Any answer but 200 ends the benchmark. */
import { readFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../gateway/measure.js';

const CONNECTIONS = 32;
/** Of a submission whose check fails, or ends with no answer of the node in time. */
const REFUSALS = [400, 503];
/** The unit in which the kernel counts CPU time: USER_HZ of Linux. */
const TICK_US = 10_000;

export interface Target {
  url: string;
  pid: number;
}

export interface Loaded {
  /** Requests per second, by the clock. */
  perSec: number;
  /** CPU time of the server per request. */
  cpuUs: number;
  answers: string[];
}

const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

/** Sends one body and returns the answer; rejects for another status than those expected. */
function post(url: string, body: string, expected: readonly number[] = [200]): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const request = httpRequest(url, { method: 'POST', agent, headers });
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => {
        if (expected.includes(response.statusCode ?? 0)) resolve(text);
        else reject(new Error(`${url}: ${response.statusCode} ${text.slice(0, 300)}`));
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** Sends every body, 32 at a time. */
export async function load({ url, pid }: Target, bodies: readonly string[]): Promise<Loaded> {
  const queue = bodies.map((body, index) => ({ body, index })).reverse();
  const answers: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop())
      answers[next.index] = await post(url, next.body);
  };
  const before = cpuUsOf(pid);
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  const seconds = (performance.now() - startedMs) / 1_000;
  return { perSec: bodies.length / seconds, cpuUs: (cpuUsOf(pid) - before) / bodies.length, answers };
}

/** Median time of one request by itself, in milliseconds. */
export const latencyMs = async (url: string, bodies: readonly string[]): Promise<number> =>
  median(await timesMs(url, bodies));

/** How long each request takes, one after the other, in milliseconds. */
export async function timesMs(url: string, bodies: readonly string[]): Promise<number[]> {
  const times: number[] = [];
  for (const body of bodies) {
    const startedMs = performance.now();
    await post(url, body);
    times.push(performance.now() - startedMs);
  }
  return times;
}

/**
 * Does something while each body is sent at most once in so many milliseconds, each by a client of its own, and refused; says how many were refused per
 * second.
 */
export async function whileSent<T>(
  url: string,
  bodies: readonly string[],
  everyMs: number,
  work: () => Promise<T>,
): Promise<{ result: T; perSec: number }> {
  let isOver = false;
  let refused = 0;
  const startedMs = performance.now();
  const senders = bodies.map(async (body, i) => {
    await sleep((i * everyMs) / bodies.length);
    for (let dueMs = performance.now(); !isOver; dueMs += everyMs) {
      await post(url, body, REFUSALS);
      refused += 1;
      await sleep(Math.max(0, dueMs + everyMs - performance.now()));
    }
  });
  const sending = Promise.all(senders);
  sending.catch(() => undefined);
  try {
    return { result: await work(), perSec: (refused * 1_000) / (performance.now() - startedMs) };
  } finally {
    isOver = true;
    await sending;
  }
}

/** CPU time of a process and its threads so far. The second field of /proc/pid/stat is in parentheses and may hold blanks. */
function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number.parseInt(fields[11] ?? '', 10) + Number.parseInt(fields[12] ?? '', 10);
  return ticks * TICK_US;
}

export const stopLoad = (): void => agent.destroy();
