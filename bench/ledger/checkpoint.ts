import { setImmediate as nextTurn } from 'node:timers/promises';
import { StandardMerkleTree } from '@openzeppelin/merkle-tree';
import { LEAF_ENCODING } from '../../core/merkle.js';
import type { Address } from '../../core/types.js';
import { createCheckpointer, type Checkpointer } from '../../keepers/settler/checkpointer.js';
import { readBalancesSince } from '../../ledger/settlements/checkpoint-log.js';
import { insertAll, upsertAll } from '../../ledger/db/columns.js';
import type { CheckpointHead, Db, GenerationRow } from '../../ledger/types.js';
import { createCheckpointView, type CheckpointView } from '../../server/read/checkpoint-view.js';
import { cpuUs, interleaved, median, ROUNDS, type Row } from '../gateway/measure.js';
import type { Database } from './databases.js';
import { market } from './feed.js';

const ROWS = 100_000;
/** Rows that change between two checkpoints. */
const CHANGED = 2_000;
const PROOFS = 200;

const accountOf = (index: number): Address => `0x${(index * 7_919 + 1).toString(16).padStart(40, '3')}`;

interface Held {
  /** The longest time for which the event loop was blocked, in CPU time of this thread, so that other work of the machine does not count. */
  cpuMs: number;
  /** The same by the clock. */
  wallMs: number;
}

/** Does the work, and measures the time between two turns of the event loop meanwhile. */
async function watched(work: () => Promise<void>): Promise<Held> {
  const held: Held = { cpuMs: 0, wallMs: 0 };
  let done = false;
  const busyUs = (): number => {
    const { user, system } = process.threadCpuUsage();
    return user + system;
  };
  const watching = (async () => {
    for (let [cpu, wall] = [busyUs(), performance.now()]; !done; [cpu, wall] = [busyUs(), performance.now()]) {
      await nextTurn();
      held.cpuMs = Math.max(held.cpuMs, (busyUs() - cpu) / 1_000);
      held.wallMs = Math.max(held.wallMs, performance.now() - wall);
    }
  })();
  await work();
  done = true;
  await watching;
  return held;
}

/** Writes the rows of a generation directly into the tables, without the ledger's code: what is measured depends only on the rows. */
async function writeBalances(db: Db, generation: number, indexes: readonly number[]): Promise<void> {
  const rows = indexes.map((index) => ({
    account: accountOf(index),
    token: market.quote.address,
    generation,
    balance_units: `${1_000_000 + index + generation}`,
    reserved_units: '0',
    net_capital_units: '0',
  }));
  const { address, symbol, decimals } = market.base;
  const quote = market.quote;
  await db.knex.transaction(async (tx) => {
    if (generation === 1) {
      await insertAll(tx, 'markets', [
        {
          market: 0,
          id: market.id,
          pair: market.pair,
          base_symbol: symbol,
          base_address: address,
          base_decimals: decimals,
          quote_symbol: quote.symbol,
          quote_address: quote.address,
          quote_decimals: quote.decimals,
          tick_size: market.tickSize,
          lot_size: market.lotSize,
          lot_units: `${market.lotUnits}`,
          tick_lot_units: `${market.tickLotUnits}`,
          max_ttl_sec: market.maxTtlSec,
          generation,
        },
      ]);
    }
    await upsertAll(tx, 'balances', ['account', 'token'], rows);
  });
}

function headOf(generation: number): GenerationRow {
  const scanned = { scannedMs: generation, observedHead: generation, observedHeadTimestampMs: generation };
  const block = { fromBlock: generation, toBlock: generation, blockHash: '0x' as const, blockTimestampMs: generation };
  return { generation, ...block, ...scanned };
}

async function publish(db: Db, checkpointer: Checkpointer, generation: number): Promise<CheckpointHead> {
  const changed = await readBalancesSince(db.knex, await checkpointer.generation());
  const cut = await checkpointer.cut({ head: headOf(generation), changed, ackFillSeqs: {} }, generation);
  await checkpointer.commit(cut, (store) => db.knex.transaction(store));
  return cut.head;
}

/** Root and some proofs are those of the published library, built from the same values. */
async function expectPublished(
  view: CheckpointView,
  root: string,
  generationOf: (index: number) => number,
): Promise<void> {
  const value = (index: number): string[] => [
    accountOf(index),
    market.quote.address,
    `${1_000_000 + index + generationOf(index)}`,
  ];
  const tree = StandardMerkleTree.of(
    Array.from({ length: ROWS }, (_, index) => value(index)),
    [...LEAF_ENCODING],
  );
  if (tree.root !== root) throw new Error(`the root is ${root}, the library has ${tree.root}`);
  for (let index = 0; index < ROWS; index += ROWS / 20) {
    const proven = (await view.proofsOf(accountOf(index)))?.rows[0];
    const proof = proven?.proof ?? [];
    if (proof.join() !== tree.getProof(value(index)).join()) throw new Error(`another proof for ${accountOf(index)}`);
  }
}

/**
 * Checkpoints over 100,000 balances: for how long the first one, later ones, and reading them back block the event loop, in the process that makes
 * them and in the one that serves them; and the cost of a proof compared with finding one in the published library's tree.
 */
export async function measureCheckpoints(database: Database): Promise<Row[]> {
  const { db, drop } = await database.create();
  try {
    const all = Array.from({ length: ROWS }, (_, index) => index);
    await writeBalances(db, 1, all);
    const held: Record<string, Held[]> = {};
    const note = async (name: string, work: () => Promise<void>): Promise<void> => {
      (held[name] ??= []).push(await watched(work));
    };
    const checkpointer = createCheckpointer(db);
    const viewOf = () => createCheckpointView({ db, deploymentId: 'bench', pollIntervalMs: 1, logger: console });
    const view = viewOf();
    await note('first', async () => void (await publish(db, checkpointer, 1)));
    await note('first shown', () => view.refresh());
    let root = '';
    for (let generation = 2; generation < 2 + ROUNDS; generation += 1) {
      await writeBalances(db, generation, all.slice(0, CHANGED));
      await note('next', async () => void ({ root } = await publish(db, checkpointer, generation)));
      await note('next shown', () => view.refresh());
      await note('read back', async () => void (await createCheckpointer(db).generation()));
      await note('read back and shown', () => viewOf().refresh());
    }
    await expectPublished(view, root, (index) => (index < CHANGED ? 1 + ROUNDS : 1));
    const rows = Object.entries(held).flatMap(([name, times]): Row[] => [
      {
        goal: name.startsWith('next') ? 'L3' : '',
        what: `${database.name}, checkpoint of 100,000, ${name}: busy at a time`,
        value: median(times.map(({ cpuMs }) => cpuMs)),
        unit: 'ms',
        // No goal for the first one and for reading it back: they happen once per database and once per process.
        bound: name.startsWith('next') ? { atMost: 20 } : null,
      },
      {
        goal: '',
        what: `${database.name}, checkpoint of 100,000, ${name}: by the clock`,
        value: median(times.map(({ wallMs }) => wallMs)),
        unit: 'ms',
        bound: null,
      },
    ]);
    return [...rows, await measureProofs(database.name, view)];
  } finally {
    await drop();
  }
}

async function measureProofs(name: string, view: CheckpointView): Promise<Row> {
  const us = await interleaved({
    proofs: () =>
      cpuUs(async () => {
        for (let count = 0; count < PROOFS; count += 1) await view.proofsOf(accountOf((count * 7_919) % ROWS));
      }),
  });
  return {
    goal: 'L3',
    what: `${name}, checkpoint of 100,000: one proof`,
    value: us.proofs / PROOFS / 1_000,
    unit: 'ms',
    bound: { atMost: 1 },
  };
}
