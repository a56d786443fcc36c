/** What orders and limits cost over HTTP, with everything that a process with the gateway's role has in front of them. */
import { makers, QUOTING } from '../gateway/requests.js';
import { median, medianRatio } from '../gateway/measure.js';
import type { Bare } from './bare.js';
import { bytesRow, cpuRows, RECOVERIES_PER_MS, type Figure, type ScaleRow } from './rows.js';
import { startScaleServer, type CpuTime, type ScaleServer } from './server.js';
import { cancelBody, modifyBody, placeBody, restingOids } from './world.js';

const BATCH = 50;
/** Makers that send at the same time. */
const CONNECTIONS = 32;
const SINGLES = 3;
const LONE = 12;
const READ_MS = 200;
/** Batches of each maker that are open at once when the heap is measured. */
const HEAP_BATCHES = 8;
/** The engine goes on compiling for some thousand batches and requests. */
const WARM_ROUNDS = 24;
const WARM_READS_MS = 1_500;
const ROUNDS = 7;

interface Measured extends CpuTime {
  count: number;
}

type Case = Extract<Figure, 'single' | 'lone' | 'place50' | 'modify50' | 'cancel50' | 'limits'>;

interface Round extends Record<Case, Measured> {
  batchBytes: number;
  rowBytes: number;
  recoveryUs: number;
}

const bars = (ms: number): { ms: number; ratio: number } => ({ ms, ratio: ms * RECOVERIES_PER_MS });
const BARS: Record<Case, { ms: number; ratio: number } | null> = {
  single: bars(0.9),
  lone: null,
  place50: bars(2),
  modify50: bars(2),
  cancel50: null,
  limits: bars(0.6),
};
const MOST_BATCH_BYTES = 8_000;

const WHAT: Record<Case, string> = {
  single: `single order, ${CONNECTIONS} makers at once`,
  lone: 'single order, nobody else',
  place50: `batch of ${BATCH} orders placed, ${CONNECTIONS} makers at once`,
  modify50: `batch of ${BATCH} orders modified`,
  cancel50: `batch of ${BATCH} orders cancelled`,
  limits: '/v0/makers/{maker}/limits',
};

export async function measureOrders(url: string, bare: Bare, rounds = ROUNDS): Promise<ScaleRow[]> {
  const server = await startScaleServer(url, CONNECTIONS);
  try {
    for (let round = 0; round < WARM_ROUNDS; round += 1) await sendRound(server, round, 1);
    await server.reader.rate({ path: limitsPath(0) }, WARM_READS_MS);
    const measured: Round[] = [];
    for (let round = 0; round < rounds; round += 1) measured.push(await runRound(server, bare, WARM_ROUNDS + round));
    return [...rowsOf(measured), bytesRow('heapPerOrder', 'heap per open order', await heapPerOrder(server), null)];
  } finally {
    await server.stop();
  }
}

/** What the heap of the gateway grows by for each order that becomes open. */
async function heapPerOrder(server: ScaleServer): Promise<number> {
  const before = await server.heap();
  const own = Array.from({ length: CONNECTIONS }, (_, maker) => maker);
  for (let turn = 0; turn < HEAP_BATCHES; turn += 1)
    await server.send(own.map((maker) => placeBody(maker, BATCH, turn)));
  return ((await server.heap()).bytes - before.bytes) / (HEAP_BATCHES * CONNECTIONS * BATCH);
}

function rowsOf(rounds: readonly Round[]): ScaleRow[] {
  const rows = (Object.keys(BARS) as Case[]).flatMap((name) => {
    const us = rounds.map((round) => round[name].cpuUs / round[name].count);
    const databaseUs = rounds.map((round) => round[name].databaseUs / round[name].count);
    const value = medianRatio(
      us,
      rounds.map((round) => round.recoveryUs),
    );
    const measured = { ms: median(us) / 1_000, databaseMs: median(databaseUs) / 1_000 };
    return cpuRows(name, WHAT[name], { ...measured, ratio: { to: 'a recovery', value } }, BARS[name]);
  });
  const recoveryUs = median(rounds.map((round) => round.recoveryUs));
  return [
    {
      ...{ goal: '', figure: null, what: 'bare recovery of a signature', value: recoveryUs, unit: 'us' },
      ...{ databaseMs: null, bound: null },
    },
    ...rows,
    bytesRow(
      'batchBytes',
      `batch of ${BATCH} orders: bytes with indexes`,
      median(rounds.map(({ batchBytes }) => batchBytes)),
      MOST_BATCH_BYTES,
    ),
    bytesRow('orderRowBytes', 'row of one order', median(rounds.map(({ rowBytes }) => rowBytes)), null),
  ];
}

const limitsPath = (maker: number): string => `/v0/makers/${makers[maker]}/limits`;

type Sent = Pick<Round, 'single' | 'lone' | 'place50' | 'modify50' | 'cancel50' | 'batchBytes' | 'rowBytes'>;

/** Every maker that takes part places, modifies and cancels a batch, then single orders; then one of them `lone` orders by itself. */
async function sendRound(server: ScaleServer, round: number, lones: number): Promise<Sent> {
  const own = Array.from({ length: CONNECTIONS }, (_, i) => (round * CONNECTIONS + i) % QUOTING);
  const timed = async (count: number, work: () => Promise<void>): Promise<Measured> => {
    const before = await server.cpu();
    await work();
    return { ...(await server.cpuSince(before)), count };
  };
  /** Sends bodies that were signed before the clock started. */
  const sent = async (bodies: readonly (readonly string[])[]): Promise<{ measured: Measured; oids: number[][] }> => {
    let oids: number[][] = [];
    const measured = await timed(bodies.flat().length, async () => {
      for (const turn of bodies) oids = [...oids, ...(await server.send(turn)).map(restingOids)];
    });
    return { measured, oids };
  };
  const cancelAll = async (makersOf: readonly number[], oids: readonly (readonly number[])[]): Promise<void> => {
    await server.send(makersOf.map((maker, i) => cancelBody(maker, oids[i]!)));
  };

  const before = await server.log();
  const placed = await sent([own.map((maker) => placeBody(maker, BATCH, round))]);
  const after = await server.log();
  const modified = await sent([own.map((maker, i) => modifyBody(maker, placed.oids[i]!, round + 1))]);
  const cancels = own.map((maker, i) => cancelBody(maker, modified.oids[i]!));
  const cancel50 = await timed(CONNECTIONS, async () => void (await server.send(cancels)));

  const rowsBefore = await server.log();
  const singles = await sent(Array.from({ length: SINGLES }, () => own.map((maker) => placeBody(maker, 1, round))));
  const rowsAfter = await server.log();
  for (let turn = 0; turn < SINGLES; turn += 1)
    await cancelAll(own, singles.oids.slice(turn * CONNECTIONS, (turn + 1) * CONNECTIONS));
  const lone = await sent(Array.from({ length: lones }, () => [placeBody(own[0]!, 1, round)]));
  await cancelAll([own[0]!], [lone.oids.flat()]);

  return {
    single: singles.measured,
    lone: lone.measured,
    place50: placed.measured,
    modify50: modified.measured,
    cancel50,
    batchBytes: (after.bytes - before.bytes) / CONNECTIONS,
    rowBytes: (rowsAfter.bytes - rowsBefore.bytes) / (rowsAfter.rows - rowsBefore.rows),
  };
}

/** A round of actions, then one of reads. */
async function runRound(server: ScaleServer, bare: Bare, round: number): Promise<Round> {
  const sent = await sendRound(server, round, LONE);
  const path = limitsPath((round * CONNECTIONS) % QUOTING);
  // An account is read once and then held; makers ask again and again.
  await server.reader.rate({ path }, 1);
  const before = await server.cpu();
  const startedMs = performance.now();
  const perSec = await server.reader.rate({ path }, READ_MS);
  const count = Math.round((perSec * (performance.now() - startedMs)) / 1_000);
  const limits = { ...(await server.cpuSince(before)), count };
  return { ...sent, limits, recoveryUs: await bare.recoveryUs() };
}
