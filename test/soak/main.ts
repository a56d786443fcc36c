/**
 * `npm run soak -- [--minutes 10] [--markets 4] [--block-ms 2000] [--levels 3] [--database <url>] [--json]`: the sandbox's chain and
 * server, three makers that replace all their quotes (so many a side) every 200 ms in all markets, two takers; then everything that must
 * hold, and what late fills cost the takers after them. The exit code is 1 when something does not hold. A block without a post is held against the
 * poster unless chain or server had to wait for a processor meanwhile, as on a machine that has other work; those are counted. With a PostgreSQL URL each run has a schema of its own, which is dropped at the end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { JsonRpcProvider } from 'ethers';
import { writeManifest } from '../../deploy/manifest.js';
import { freePort } from '../../deploy/sandbox/ports.js';
import { deploySandbox } from '../../deploy/sandbox/sandbox.js';
import { connect } from '../../deploy/transactions.js';
import { openDb } from '../../ledger/db/db.js';
import { startChild } from '../support/child.js';
import { auditDatabase } from './audit.js';
import { blocksWithoutPost, createWaits, type BlockRange } from './blocks.js';
import { depositAll, startMaker } from './maker.js';
import { lateFillLines, type LateFills } from './late-fills.js';
import { judgeMemory, pressAndMeasure, PROBE_ARGS, type MemorySample } from './memory.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    markets: { type: 'string', default: '4' },
    'block-ms': { type: 'string', default: '2000' },
    levels: { type: 'string', default: '3' },
    database: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const MINUTE_MS = 60_000;
const SAMPLE_MS = 30_000;
/** A short run is sampled more often, since each quarter of it needs a sample. */
const LEAST_SAMPLES = 8;
/** The waits of processes are noted at each block. */
const LOOK_MS = 100;
/** Until a busy server has collected its garbage and said what is left. */
const ANSWER_TIMEOUT_MS = 10_000;
const START_TIMEOUT_MS = 60_000;
/** Blocks until the first curve of every market stands, and until the last fill is booked. */
const SETTLE_BLOCKS = 6;
const MAKERS = ['maker1', 'maker2', 'maker3'] as const;
const say = (text: string): void => void process.stderr.write(`soak: ${text}\n`);

const folder = mkdtempSync(join(tmpdir(), 'curvebook-soak-'));
const manifestPath = join(folder, 'sandbox.json');
const schema = `soak_${process.pid}_${Date.now()}`;
const databaseUrl = databaseOf(values.database);
const chain = startChild('deploy/sandbox/chain-main.ts', ['--port', '0', '--block-time-ms', values['block-ms']]);
const children = [chain];
const stopping = new AbortController();

/** A database that holds nothing yet: a file, or a schema in the PostgreSQL database that was named. */
function databaseOf(named: string | undefined): string {
  if (named === undefined) return `sqlite:${join(folder, 'soak.sqlite')}`;
  const url = new URL(named);
  if (url.protocol.startsWith('postgres')) url.searchParams.set('schema', schema);
  return url.toString();
}

async function dropSchema(): Promise<void> {
  if (!databaseUrl.startsWith('postgres')) return;
  const db = await openDb(databaseUrl);
  await db.knex.raw('drop schema if exists ?? cascade', [schema]);
  await db.close();
}

async function untilReady(serverUrl: string, maker: string): Promise<void> {
  for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += 200) {
    const answer = await fetch(`${serverUrl}/v0/makers/${maker}/limits`).catch(() => null);
    const body = answer?.ok ? ((await answer.json()) as { ledger: { ready: boolean } }) : null;
    if (body?.ledger.ready) return;
    await delay(200);
  }
  throw new Error('the server is not ready');
}

/** A collection stops the server for a while: least harm is done when the cut for the next block is furthest away. */
async function untilNextBlock(provider: JsonRpcProvider, endMs: number): Promise<number> {
  const seen = await provider.getBlockNumber();
  for (;;) {
    const number = await provider.getBlockNumber();
    if (number !== seen || Date.now() >= endMs) return number;
    await delay(20);
  }
}

async function run(): Promise<boolean> {
  const line = await chain.line((one) => one.startsWith('{'), START_TIMEOUT_MS);
  const { rpcUrl } = JSON.parse(line) as { rpcUrl: string };
  const serverUrl = `http://127.0.0.1:${await freePort('127.0.0.1')}`;
  const marketCount = Number.parseInt(values.markets, 10);
  const manifest = await deploySandbox({ rpcUrl, serverUrl, marketCount, log: say });
  writeManifest(manifestPath, manifest);
  const provider = connect(rpcUrl);
  const common = ['--manifest', manifestPath, '--database', databaseUrl];
  const serve = ['serve', ...common, '--port', new URL(serverUrl).port];
  const server = startChild('cli/main.ts', serve, { LOG_LEVEL: 'info', ROLES: '' }, PROBE_ARGS);
  children.push(server);
  for (const role of MAKERS) {
    const { address } = manifest.accounts.find((one) => one.role === role)!;
    await untilReady(serverUrl, address);
    const approve = startChild('cli/main.ts', ['maker', 'approve', address, ...common], { LOG_LEVEL: 'warn' });
    await new Promise<void>((resolve) => approve.process.once('exit', () => resolve()));
  }
  await depositAll(manifest, provider, 'maker3');

  const levels = Number.parseInt(values.levels, 10);
  const makers = MAKERS.map((role) => startMaker(manifest, role, levels, stopping.signal));
  for (const role of ['taker1', 'taker2']) children.push(startChild('examples/taker.ts', [manifestPath, role]));
  const blockMs = Number.parseInt(values['block-ms'], 10);
  await delay(SETTLE_BLOCKS * blockMs);
  const range: BlockRange = { from: await provider.getBlockNumber(), to: 0 };
  say(`trading in ${marketCount} markets from block ${range.from} on`);
  const samples: MemorySample[] = [];
  const pausedAfter = new Set<number>();
  const waits = createWaits([chain.process.pid!, server.process.pid!], blockMs);
  const looking = setInterval(() => void provider.getBlockNumber().then(waits.look, () => undefined), LOOK_MS);
  looking.unref();
  const lengthMs = Number.parseFloat(values.minutes) * MINUTE_MS;
  const endMs = Date.now() + lengthMs;
  const sampleMs = Math.min(SAMPLE_MS, lengthMs / LEAST_SAMPLES);
  while (Date.now() < endMs) {
    await delay(Math.min(sampleMs, Math.max(0, endMs - Date.now())));
    pausedAfter.add(await untilNextBlock(provider, endMs));
    if (server.process.exitCode !== null) throw new Error(`the server ended:\n${server.output()}`);
    samples.push(await pressAndMeasure(server, ANSWER_TIMEOUT_MS));
  }
  range.to = await provider.getBlockNumber();
  clearInterval(looking);
  waits.look(range.to);
  stopping.abort();
  const quoted = await Promise.all(makers);
  for (const taker of children.splice(2)) await taker.end('SIGINT');
  await delay(SETTLE_BLOCKS * blockMs);
  const { missed, ...counts } = await blocksWithoutPost(provider, manifest.contracts['curveBook'], range);
  const blocks = {
    ...counts,
    missed: missed.filter(waits.hadTime),
    withoutTime: missed.filter((one) => !waits.hadTime(one)),
  };
  await server.end('SIGTERM');
  const status = server
    .output()
    .split('\n')
    .findLast((one) => one.includes('poster status'));
  const audit = await auditDatabase(databaseUrl, manifest, provider);
  const verify = startChild('cli/main.ts', ['verify', ...common, '--rpc', rpcUrl], { LOG_LEVEL: 'warn' });
  await new Promise<void>((resolve) => verify.process.once('exit', () => resolve()));
  const verified = verify.process.exitCode === 0;
  provider.destroy();

  const { problems: grown, ...memory } = judgeMemory(samples);
  const { lateFills, ...audited } = audit;
  const result = { minutes: values.minutes, range, blocks, quoted, audit: audited, memory, status: status ?? null };
  const problems = [
    ...blocks.missed.map((number) => {
      const pause = pausedAfter.has(number - 1) ? ', before which the server stopped to be measured' : '';
      return `no post in block ${number}${pause}`;
    }),
    ...audit.problems,
    ...(verified ? [] : [`verify failed:\n${verify.output()}`]),
    ...grown,
    ...(audit.fills === 0 ? ['nobody traded'] : []),
  ];
  console.log(
    values.json ? JSON.stringify({ ...result, lateFills, problems }, null, 2) : summary(result, lateFills, problems),
  );
  return problems.length === 0;
}

function summary(result: Record<string, unknown>, lateFills: LateFills, problems: readonly string[]): string {
  const lines = Object.entries(result).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  lines.push(...lateFillLines(lateFills));
  return [...lines, problems.length === 0 ? 'everything holds' : `PROBLEMS:\n  ${problems.join('\n  ')}`].join('\n');
}

try {
  process.exitCode = (await run()) ? 0 : 1;
} finally {
  stopping.abort();
  for (const child of children.reverse()) await child.end('SIGKILL');
  await dropSchema();
  rmSync(folder, { recursive: true, force: true });
}
