import { statSync } from 'node:fs';
import { openArchive } from '../../keepers/archive/archive.js';
import { exportPublications, exportSettlements } from '../../keepers/archive/export.js';
import { ArchiveError, type ArchiveHighs } from '../../keepers/archive/format.js';
import {
  carryOutImport,
  planImport,
  type ImportDeps,
  type ImportPlan,
  type ImportReport,
} from '../../keepers/archive/import.js';
import { carryOutPrune, planPrune, type PrunePlan } from '../../keepers/archive/prune.js';
import { createFolderStore, readArchive, type ArchiveStore } from '../../keepers/archive/store.js';
import { boundDeployment, openDb, withoutPassword } from '../../ledger/db/db.js';
import { isSqliteInUse } from '../../ledger/db/sole-user.js';
import type { Hex } from '../../core/types.js';
import { readVerb, type CommandLine } from '../arguments.js';
import { NO_OPERATOR, type CommandConfig } from '../config.js';
import { prepareKnownDb } from '../database.js';
import { ConfigError, UsageError } from '../errors.js';
import { CommandError } from './command-error.js';
import { commandConfig, commandRpc, confirm, print, readAddress, withDatabase, type Io } from './command.js';

const VERBS = ['list', 'check', 'export', 'import', 'prune'] as const;

/** Lists, checks, exports, imports and prunes the archive, which has what explains fills outside the database. */
export async function runArchive(line: CommandLine, io: Io): Promise<number> {
  const verb = readVerb('archive', line.positionals[0], VERBS);
  const config = commandConfig(line, line.positionals[0] === 'export' ? ['poster', 'settler'] : []);
  if (config.archiveDir === null) throw new ConfigError(['ARCHIVE_DIR: required, or --archive']);
  // Only an export may make the folder: one that is missing is on a disk that is not mounted, or misspelt, and would pass for an empty one.
  if (verb !== 'export') expectFolder(config.archiveDir);
  const store = createFolderStore(config.archiveDir);
  const run = { list: runList, check: runCheck, export: runExport, import: runImport, prune: runPrune }[verb];
  return run({ line, io, config, store });
}

/** Throws CommandError `ARCHIVE_MISSING`. */
function expectFolder(dir: string): void {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true) return;
  throw new CommandError(
    'ARCHIVE_MISSING',
    `there is no folder ${dir}: is ARCHIVE_DIR, or --archive, right, and its disk mounted?`,
  );
}

const emptyArchive = (): ArchiveError => new ArchiveError('ARCHIVE_EMPTY', 'the archive has no files');

interface Run {
  line: CommandLine;
  io: Io;
  config: CommandConfig;
  store: ArchiveStore;
}

interface Folder {
  first: number;
  last: number;
  publications: number;
  settlements: number;
  books: number;
  fromMs: number;
  toMs: number;
}

async function runList({ line, io, config, store }: Run): Promise<number> {
  const folders: Folder[] = [];
  for await (const { batch } of readArchive(store, config.manifest.deploymentId)) {
    const { number, timeMs } = batch;
    let folder = folders.at(-1);
    if (folder === undefined || number % store.filesPerFolder === 0) {
      folder = { first: number, last: number, publications: 0, settlements: 0, books: 0, fromMs: timeMs, toMs: timeMs };
      folders.push(folder);
    }
    folder.last = number;
    folder.toMs = timeMs;
    folder.publications += batch.publications.length;
    folder.settlements += batch.settlements.length;
    folder.books += batch.snapshots.length;
  }
  const at = (ms: number): string => new Date(ms).toISOString();
  print(
    io,
    line,
    folders,
    folders.length === 0
      ? ['the archive is empty']
      : folders.map(
          (one) =>
            `files ${one.first} to ${one.last}, ${at(one.fromMs)} to ${at(one.toMs)}: ${one.publications} publications, ${one.books} books, ${one.settlements} settlements`,
        ),
  );
  return 0;
}

async function runCheck({ line, io, config, store }: Run): Promise<number> {
  const signers = new Set<string>();
  let [first, files, publications, settlements] = [0, 0, 0, 0];
  let highs: ArchiveHighs | null = null;
  for await (const { batch, signer } of readArchive(store, config.manifest.deploymentId)) {
    if (files === 0) first = batch.number;
    files += 1;
    publications += batch.publications.length;
    settlements += batch.settlements.length;
    highs = batch.highs;
    signers.add(signer);
  }
  if (files === 0) throw emptyArchive();
  const facts = { files, first, publications, settlements, signers: [...signers], highs };
  const lines = [
    `${files} files from ${first} on follow each other, with ${publications} publications and ${settlements} settlements, signed by ${[...signers].join(', ')}`,
  ];
  if (line.overrides.RPC_URL === undefined) {
    print(io, line, { ok: true, ...facts }, lines);
    return 0;
  }
  return withDatabase(config, async (db) => {
    const plan = await planImport({ ...importDeps({ line, config, store }), db });
    print(io, line, { ok: true, ...facts, import: summary(plan) }, [...lines, ...describe(plan)]);
    return 0;
  });
}

async function runExport({ line, io, config, store }: Run): Promise<number> {
  const { keys, manifest } = config;
  const { poster: privateKey, settler: settlerKey } = keys;
  if (privateKey === undefined)
    throw new ConfigError(['POSTER_PRIVATE_KEY: required, the manifest names no poster account']);
  return withDatabase(config, async (db) => {
    const { deploymentId } = manifest;
    const signedBy = (key: Hex) => openArchive({ store, deploymentId, privateKey: key, nowMs: () => Date.now() });
    const report = await exportPublications({ db, store, archive: await signedBy(privateKey), deploymentId });
    // Settlements are only exported with the settler's key, since their files must be signed by it.
    const settlements =
      settlerKey === undefined
        ? null
        : await exportSettlements({ db, store, archive: await signedBy(settlerKey), deploymentId });
    print(io, line, { ok: true, ...report, settlements }, [
      `${report.exported} publications written; ${report.lost} have no book any more and were not hit`,
      settlements === null
        ? 'settlements were left out: SETTLER_PRIVATE_KEY is not set'
        : `${settlements} settlements written`,
    ]);
    return 0;
  });
}

async function runImport({ line, io, config, store }: Run): Promise<number> {
  const given = importDeps({ line, config, store });
  if ((await store.lastNumber()) === 0) throw emptyArchive();
  const { DATABASE_URL: url, manifest } = config;
  // On PostgreSQL logs have locks. On SQLite the import would get them all from a running server, and close its open orders.
  if (url.startsWith('sqlite:') && isSqliteInUse(url)) {
    const message = `${url} is in use: stop the server, and every other command, and run the import again`;
    throw new CommandError('SERVER_RUNS', message);
  }
  // Unlike other commands, it may create the database.
  const db = await openDb(url);
  try {
    const isNew = (await boundDeployment(db)) === null;
    await prepareKnownDb(db, manifest.deploymentId);
    const nothing = isNew ? `nothing was imported; ${withoutPassword(url)} was made and is empty` : 'nothing was done';
    const deps = { ...given, db };
    let plan: ImportPlan;
    let isConfirmed: boolean;
    try {
      plan = await planImport(deps);
      const closing = 'all open orders will be closed, since what was canceled in the lost minutes is unknown';
      if (!line.json) io.output.write(`${[...describe(plan), closing].join('\n')}\n`);
      isConfirmed = await confirm(io, line, 'Import?');
    } catch (error) {
      if (isNew) io.errors.write(`${nothing}\n`);
      throw error;
    }
    if (!isConfirmed) {
      if (isNew) io.errors.write(`${nothing}\n`);
      print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: nothing }, []);
      return 1;
    }
    const report = await carryOut(deps, plan);
    print(io, line, { ok: true, ...summary(plan), ...report }, [
      `imported ${report.imported} publications, ${report.books} books and ${report.settlements} settlements; closed ${report.closedOrders} orders of ${report.closedMakers} makers`,
      ...(report.reconcileSeq === null
        ? []
        : [`asked for as act ${report.reconcileSeq}: the watcher reads the blocks anew when it runs`]),
    ]);
    return 0;
  } finally {
    await db.close();
  }
}

/** Carries a plan out. Throws CommandError `SERVER_RUNS` when a log stays another process's. */
async function carryOut(deps: ImportDeps, plan: ImportPlan): Promise<ImportReport> {
  try {
    return await carryOutImport(deps, plan);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'TimeoutError') throw error;
    const message = 'a gateway, poster or settler still runs: stop it and run the import again; it may be half done';
    throw new CommandError('SERVER_RUNS', message);
  }
}

async function runPrune({ line, io, config, store }: Run): Promise<number> {
  const beforeMs = readTime(line.before);
  return withDatabase(config, async (db) => {
    const plan = await planPrune({ db, store, deploymentId: config.manifest.deploymentId, beforeMs });
    const lines = describePrune(plan, beforeMs);
    if (plan.folders.length === 0 || line.dryRun) {
      print(io, line, { ok: true, ...plan, removed: 0 }, lines);
      return 0;
    }
    if (!line.json) io.output.write(`${lines.join('\n')}\n`);
    if (!(await confirm(io, line, 'Remove them?'))) {
      print(io, line, { ok: false, code: 'NOT_CONFIRMED', message: 'nothing was done' }, []);
      return 1;
    }
    const removed = await carryOutPrune(store, plan);
    print(io, line, { ok: true, ...plan, removed }, [`removed ${removed} files`]);
    return 0;
  });
}

/** A past time with a time zone, of a day that exists: JavaScript takes 31 February for 3 March. */
function readTime(text: string | undefined): number {
  const isTime = text !== undefined && /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  const day = isTime ? text.slice(0, 10) : '';
  const dayMs = Date.parse(day);
  const exists = !Number.isNaN(dayMs) && new Date(dayMs).toISOString().startsWith(day);
  const ms = isTime && exists ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms) || ms > Date.now())
    throw new UsageError('--before: when the oldest backup was made that you may restore, as 2026-01-31T12:00:00Z');
  return ms;
}

function describePrune({ folders, keeps }: PrunePlan, beforeMs: number): string[] {
  const at = (ms: number): string => new Date(ms).toISOString();
  return [
    ...folders.map((one) => `would remove files ${one.first} to ${one.last}, ${at(one.fromMs)} to ${at(one.toMs)}`),
    ...(folders.length === 0
      ? ['nothing can be removed']
      : [
          `afterwards a restore takes a backup of ${at(beforeMs)} or later: no new database can be made of the archive alone`,
        ]),
    keeps ?? 'more can be removed with the next run',
  ];
}

/** All that an import needs but the database. */
function importDeps({ line, config, store }: Pick<Run, 'line' | 'config' | 'store'>): Omit<ImportDeps, 'db'> {
  const { manifest, operator } = config;
  if (operator === null) throw new ConfigError([NO_OPERATOR]);
  const signers = line.signer.split(',').filter((one) => one.trim() !== '');
  const { curveBook, entrypoint, custodian } = manifest.contracts;
  return {
    store,
    rpc: commandRpc(config),
    deploymentId: manifest.deploymentId,
    deploymentBlock: manifest.deploymentBlock,
    contracts: { curveBook, entrypoint, custodian },
    operator,
    signers: new Set(signers.map((one) => readAddress(one.trim()))),
    nowMs: () => Date.now(),
  };
}

function summary(plan: ImportPlan) {
  const { files, publications, missing, landed, superseded, disproven, settlements, checkpoint, books } = plan;
  const { unexplained, rereading } = plan;
  return {
    files,
    publications,
    missing: missing.length,
    landed,
    superseded: superseded.map(({ market, seq }) => ({ market, seq })),
    disproven: disproven.map(({ publication: { market, seq }, file }) => ({ market, seq, file })),
    settlements: settlements.length,
    checkpoint: checkpoint === null ? null : { seq: checkpoint.checkpointSeq, root: checkpoint.root },
    books: books.length,
    unexplained: unexplained.map(({ market, seq, blockNumber }) => ({ market, seq, blockNumber })),
    rereadFrom: rereading === null ? null : rereading.block.number + 1,
  };
}

function describe(plan: ImportPlan): string[] {
  const {
    missing,
    landed,
    superseded,
    disproven,
    settlements,
    checkpoint,
    books,
    unexplained,
    rereading,
    publications,
  } = plan;
  return [
    `the database lacks ${missing.length} of ${publications} publications of the archive, of which ${landed} landed; ${books.length} books`,
    `it lacks ${settlements.length} settlements${checkpoint === null ? '' : `; the newest checkpoint that was published is ${checkpoint.checkpointSeq}, root ${checkpoint.root}`}`,
    ...superseded.map(
      ({ market, seq }) =>
        `curve ${seq} of market ${market} landed as the archive has it; the database's own of that number makes way, kept in the archive's folder set-aside`,
    ),
    ...disproven.map(
      ({ publication: { market, seq }, file }) =>
        `curve ${seq} of market ${market} is another one on the chain than in file ${file}: left out; if a database has that one, archive export writes it`,
    ),
    ...(rereading === null
      ? []
      : [
          `blocks from ${rereading.block.number + 1} on are to be read anew: their curves were not known when they were scanned`,
        ]),
    ...(unexplained.length === 0
      ? []
      : [`${unexplained.length} curves on the chain are in neither; they stay unexplained:`]),
    ...unexplained.map(({ market, seq, blockNumber }) => `  curve ${seq} of market ${market}, block ${blockNumber}`),
  ];
}
