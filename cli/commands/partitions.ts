import { toSafeInt } from '../../core/amounts.js';
import { MAX_REORG_BLOCKS } from '../../keepers/watcher/reconcile.js';
import { checkPosts } from '../../keepers/poster/check-posts.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import {
  attachPartition,
  cutOutbox,
  detachPartition,
  findCandidate,
  readPartitions,
  type Partition,
} from '../../ledger/transactions/outbox-partitions.js';
import { PartitionError } from '../../ledger/transactions/partition-locks.js';
import type { Db } from '../../ledger/types.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { UsageError } from '../errors.js';
import { commandConfig, confirm, print, withDatabase, type Io } from './command.js';

const VERBS = ['list', 'cut', 'detach', 'attach'] as const;

/** Divides the outbox by time, takes old posts out of it, and puts them back. */
export async function runPartitions(line: CommandLine, io: Io): Promise<number> {
  const [first, which, ...more] = line.positionals;
  const verb = readVerb('partitions', first, VERBS);
  const takesNumber = verb === 'detach' || verb === 'attach';
  const extra = takesNumber ? more[0] : which;
  if (extra !== undefined) throw new UsageError(`unexpected argument: ${extra}`);
  if (takesNumber && !/^[1-9]\d{0,5}$/.test(which ?? '')) throw new UsageError('name the number of a partition');
  const no = takesNumber ? toSafeInt(which!) : 0;
  return withDatabase(commandConfig(line), async (db) => {
    if (verb === 'list') return show(line, io, await readPartitions(db));
    if (verb === 'cut') return show(line, io, await cutOutbox(db, Date.now(), line.yes ? { holdMs: 0 } : {}));
    return verb === 'detach' ? detach(db, line, io, no) : attach(db, line, io, no);
  });
}

function show(line: CommandLine, io: Io, partitions: readonly Partition[]): number {
  const text = partitions.length === 0 ? ['the outbox is not divided'] : partitions.map(describe);
  print(io, line, partitions, text);
  return 0;
}

function describe({ no, fromMs, toMs, bytes, detached }: Partition): string {
  const at = (ms: number | null, none: string): string => (ms === null ? none : new Date(ms).toISOString());
  const state =
    detached === null
      ? ''
      : `, detached: ${detached.rows} transactions, of which ${detached.kept} stayed, hash ${detached.digest}`;
  return `${no}: ${at(fromMs, 'the beginning')} to ${at(toMs, 'now')}, ${bytes} bytes${state}`;
}

async function detach(db: Db, line: CommandLine, io: Io, no: number): Promise<number> {
  const head = await lastGeneration(db.knex);
  if (head === null) throw new PartitionError('NOT_FINAL', 'the ledger has not scanned a block yet');
  const finalBlock = head.toBlock - MAX_REORG_BLOCKS;
  const candidate = await findCandidate(db, no, { nowMs: Date.now(), finalBlock });
  if (!(await confirm(io, line, `Take the posts of partition ${no} out of the database?`))) return refused(line, io);
  const markets = await readMarkets(db.knex);
  const check = (rows: Parameters<typeof checkPosts>[2]): Promise<void> => checkPosts(db.knex, markets, rows);
  const detached = await detachPartition(db, candidate, { check, timeMs: Date.now() });
  print(io, line, { ok: true, no, ...detached }, [
    `partition ${no} is detached: ${detached.rows} transactions, of which ${detached.kept} stayed, hash ${detached.digest}`,
    `they are in ${candidate.table}_detached: dump it, keep the file, and drop it`,
  ]);
  return 0;
}

async function attach(db: Db, line: CommandLine, io: Io, no: number): Promise<number> {
  if (!(await confirm(io, line, `Put the posts of partition ${no} back?`))) return refused(line, io);
  const attached = await attachPartition(db, no, Date.now());
  print(io, line, { ok: true, no, ...attached }, [`partition ${no} is attached: ${attached.rows} transactions`]);
  return 0;
}

function refused(line: CommandLine, io: Io): number {
  print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
  return 1;
}
