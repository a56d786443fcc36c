/**
 * `npm run bench:scale -- --load`: ten times the load that the model calls today's. First the real gateway is driven as fast as this machine serves
 * it, for a bounded time, with the open orders of all makers in its book: what a batch costs then must be what the model takes it for.
 * Then ten times today's batches go through as many shards as the model asks for, in virtual time, at that cost.
 */
import { holds } from '../gateway/measure.js';
import { QUOTING } from '../gateway/requests.js';
import { figureValues } from './figures.js';
import { BATCH, costOf, TODAY, type Load } from './model.js';
import { startScaleServer } from './server.js';
import { simulate, type SimulatedRun } from './simulate.js';
import { modifyBody, placeBody, restingOids } from './world.js';

const CONNECTIONS = 20;
/** Share of the run in which the engine is still compiling, and that does not count. */
const WARM_SHARE = 0.4;
/** How far the cost under load may be from the figure of the model: the machine is another one, or busy. */
const MOST_FACTOR = 2;
const COMMIT_MS = 3;
const SIMULATED_SEC = 5;
const SEED = 1;
/** Shards are sized for 0.7 of a core; chance makes one of them a little busier. */
const MOST_BUSY = 0.8;
/** A batch is answered within so long by a deployment of the model's size. */
const MOST_P99_MS = 250;

export const TEN_TIMES: Load = { ...TODAY, makers: 1_000, busyMakers: 1_000 };

interface LoadReport {
  batches: number;
  batchesPerSec: number;
  ms: number;
  databaseMs: number;
  modelMs: number;
  gateways: number;
  run: SimulatedRun;
  holds: boolean;
  text: string;
}

export async function runLoad(url: string, seconds: number): Promise<LoadReport> {
  const real = await drive(url, seconds);
  const figures = figureValues();
  const { batchesPerSec, gateways } = costOf(TEN_TIMES, figures);
  const parts = { shards: gateways, edges: 0, edgeMs: 0, sequencerMs: figures.modify50Ms, commitMs: COMMIT_MS };
  const run = simulate(parts, batchesPerSec, SIMULATED_SEC, SEED);
  const rows = [
    {
      ...{ goal: '', what: 'CPU of a batch under load / in the model', unit: 'x' },
      ...{ value: real.ms / figures.modify50Ms, bound: { atMost: MOST_FACTOR } },
    },
    { goal: '', what: 'busiest sequencer', unit: 'x', value: run.sequencerUse, bound: { atMost: MOST_BUSY } },
    { goal: '', what: 'p99', unit: 'ms', value: run.p99Ms, bound: { atMost: MOST_P99_MS } },
  ];
  const lines = [
    `real: ${real.batches} batches of ${BATCH} in ${real.seconds.toFixed(1)} s, ${real.batchesPerSec.toFixed(0)}/s with ${QUOTING * BATCH} open orders; ` +
      `${real.ms.toFixed(2)} ms of ours and ${real.databaseMs.toFixed(2)} ms of the database each`,
    `virtual: ${batchesPerSec} batches/s over ${gateways} shards for ${SIMULATED_SEC} s: ${run.batches} batches, ${run.perCommit.toFixed(1)} per commit, ` +
      `busiest sequencer ${run.sequencerUse.toFixed(2)}, p50 ${run.p50Ms.toFixed(1)} ms, p99 ${run.p99Ms.toFixed(1)} ms, ${run.waiting} not answered at the end`,
    ...rows.map(
      (row) =>
        `${row.what}: ${row.value.toPrecision(3)} ${row.unit}, <= ${row.bound.atMost} ${holds(row) ? 'holds' : 'MISSED'}`,
    ),
  ];
  return {
    ...real,
    modelMs: figures.modify50Ms,
    gateways,
    run,
    holds: rows.every(holds),
    text: `${lines.join('\n')}\n`,
  };
}

/** All makers have a batch open and replace it in turns, as many at a time as there are connections. */
async function drive(url: string, seconds: number) {
  const server = await startScaleServer(url, CONNECTIONS);
  try {
    const all = Array.from({ length: QUOTING }, (_, maker) => maker);
    const turns = Array.from({ length: QUOTING / CONNECTIONS }, (_, turn) =>
      all.slice(turn * CONNECTIONS, (turn + 1) * CONNECTIONS),
    );
    const oids: number[][] = [];
    for (const turn of turns) {
      const answers = await server.send(turn.map((maker) => placeBody(maker, BATCH, 0)));
      turn.forEach((maker, i) => (oids[maker] = restingOids(answers[i]!)));
    }
    const startedMs = performance.now();
    const warmUntilMs = startedMs + seconds * 1_000 * WARM_SHARE;
    const endMs = startedMs + seconds * 1_000;
    let from: { ms: number; cpu: Awaited<ReturnType<typeof server.cpu>> } | null = null;
    let batches = 0;
    for (let round = 0; performance.now() < endMs; round += 1) {
      if (from === null && performance.now() >= warmUntilMs) {
        from = { ms: performance.now(), cpu: await server.cpu() };
        batches = 0;
      }
      const turn = turns[round % turns.length]!;
      const shift = 1 + Math.floor(round / turns.length);
      const answers = await server.send(turn.map((maker) => modifyBody(maker, oids[maker]!, shift)));
      turn.forEach((maker, i) => (oids[maker] = restingOids(answers[i]!)));
      batches += turn.length;
    }
    if (from === null) throw new RangeError('--seconds leaves no time to measure');
    const used = await server.cpuSince(from.cpu);
    const took = (performance.now() - from.ms) / 1_000;
    return {
      ...{ batches, seconds: took, batchesPerSec: batches / took },
      ...{ ms: used.cpuUs / batches / 1_000, databaseMs: used.databaseUs / batches / 1_000 },
    };
  } finally {
    await server.stop();
  }
}
