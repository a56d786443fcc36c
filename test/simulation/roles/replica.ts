/**
 * A replica that lags, and is promoted: it stops following at some commit, the primary is lost some seconds later, and the operator does what the
 * runbook says of a lost database: everybody stops, the archive is imported into what the replica has, everybody starts. What was acknowledged
 * in between is lost, and that alone.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { carryOutImport, planImport } from '../../../keepers/archive/import.js';
import { ArchiveError } from '../../../keepers/archive/format.js';
import type { ArchiveStore } from '../../../keepers/archive/store.js';
import type { Address } from '../../../core/types.js';
import { CurveBook__factory } from '../../../typechain-types/index.js';
import type { Auditor } from '../auditor.js';
import type { Clients } from '../clients.js';
import type { Operator } from '../operator.js';
import type { Backend } from '../processes.js';
import type { Simulation } from '../world.js';

interface Replica {
  /** Has it lag and be promoted at some moment of the blocks with faults. */
  start(blocks: number): void;
  /** Whether everybody stands still while the operator works. */
  isBusy(): boolean;
}

const CURVE_POSTED = CurveBook__factory.createInterface().getEvent('CurvePosted').topicHash;
const BLOCK_MS = 2_000;
/** Files of one folder of the archive. */
const FILES_PER_FOLDER = 50;
const MOST_LAG_MS = 15_000;
const RETRY_MS = 4_000;
/** By then the import must have worked, whatever one endpoint says. */
const DRILL_MS = 180_000;

/** An archive in memory, which takes some time for each file. */
export function createMemoryStore({ scheduler, decisions }: Simulation): ArchiveStore {
  const files = new Map<number, Buffer>();
  const wait = (): Promise<void> => scheduler.sleep(decisions.int('archiveMs', 1, 20));
  return {
    filesPerFolder: FILES_PER_FOLDER,
    lastNumber: () => Promise.resolve(files.size),
    firstNumber: () => Promise.resolve(Math.min(files.size, 1)),
    read: (number) => Promise.resolve(files.get(number)!),
    async write(number, bytes) {
      await wait();
      const there = files.get(number);
      if (there !== undefined) return there.equals(bytes);
      files.set(number, Buffer.from(bytes));
      // Whoever wrote may die before it knows.
      await wait();
      return true;
    },
    setAside: () => Promise.resolve(),
    removeFolder: () => Promise.reject(new Error('nothing is removed')),
  };
}

interface ReplicaDeps {
  world: Simulation;
  backend: Backend;
  operator: Operator;
  auditor: Auditor;
  clients: Clients;
  store: ArchiveStore;
  /** The file of the primary. */
  path: string;
  /** The database is another file from now on. */
  use(path: string): void;
}

export function createReplica({ world, backend, operator, auditor, clients, store, path, use }: ReplicaDeps): Replica {
  const { scheduler, decisions, record, chain, folder } = world;
  const { config } = backend;
  let isBusy = false;

  async function landedCurves(address: Address): Promise<number> {
    const filter = { address, topics: [CURVE_POSTED], fromBlock: '0x0', toBlock: 'latest' };
    return ((await chain.rpc.call('eth_getLogs', [filter])) as unknown[]).length;
  }

  async function drill(): Promise<void> {
    const { contracts, deploymentId, deploymentBlock } = config.manifest;
    const of = (name: string): Address =>
      (contracts as Readonly<Record<string, string>>)[name]!.toLowerCase() as Address;
    const untilMs = scheduler.nowMs() + DRILL_MS;
    for (;;) {
      const deps = {
        ...{ db: operator.db(), store, deploymentId, deploymentBlock, operator: config.operator },
        rpc: operator.rpc(),
        contracts: { curveBook: of('curveBook'), entrypoint: of('entrypoint'), custodian: of('custodian') },
        signers: new Set<Address>(),
        nowMs: () => Date.now(),
      };
      try {
        const plan = await planImport(deps);
        const report = await carryOutImport(deps, plan);
        record.trace(() => `${scheduler.nowMs()} imported ${JSON.stringify(report)}`);
        record.count('archive imported');
        if (report.imported > 0) record.count('archive had publications that the replica lacked');
        if (report.closedOrders > 0) record.count('import closed orders');
        if (plan.unexplained.length > 0)
          record.violate(`${scheduler.nowMs()} the archive lacks ${plan.unexplained.length} curves that landed`);
        return;
      } catch (error) {
        // Nobody lived long enough to publish anything, so that there is nothing to import.
        const isEmpty = error instanceof ArchiveError && error.code === 'ARCHIVE_EMPTY';
        if (isEmpty && (await landedCurves(deps.contracts.curveBook)) === 0) return record.count('archive empty');
        record.trace(() => `${scheduler.nowMs()} the import fails: ${String(error)}`);
        record.count('archive import fails');
        if (scheduler.nowMs() > untilMs) {
          record.violate(`${scheduler.nowMs()} no progress: the archive is not imported: ${String(error)}`);
          return;
        }
        await scheduler.sleep(RETRY_MS);
      }
    }
  }

  function lag(): void {
    const copy = join(folder, 'replica.sqlite');
    const primary = new Database(path, { readonly: true });
    primary.exec(`vacuum into '${copy}'`);
    primary.close();
    const mark = auditor.mark();
    record.trace(() => `${scheduler.nowMs()} the replica lags from here on`);
    scheduler.after(decisions.int('lagMs', 500, MOST_LAG_MS), () => promote(copy, mark), null);
  }

  function promote(copy: string, mark: ReturnType<Auditor['mark']>): void {
    isBusy = true;
    record.count('replica promoted');
    record.trace(() => `${scheduler.nowMs()} the lagging replica is promoted`);
    const done = Promise.withResolvers<void>();
    backend.hold(done.promise);
    use(copy);
    auditor.pause();
    const work = async (): Promise<void> => {
      await operator.reopen();
      await drill();
      const lost = clients.forget(mark.opened, auditor.swapsIn(copy));
      record.most('acknowledged orders lost with the primary', lost);
      auditor.reopen(copy, mark);
      isBusy = false;
      done.resolve();
    };
    scheduler.as(operator.actor, work).catch((error: unknown) => {
      record.violate(
        `the simulation itself: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
    });
  }

  return {
    start(blocks) {
      const atMs = decisions.int('replica lags at', 20_000, Math.max(20_001, blocks * BLOCK_MS * 0.8));
      // A chain that does not move has nothing to lose.
      if (chain.head().number >= 0) scheduler.after(atMs, lag, null);
    },
    isBusy: () => isBusy,
  };
}
