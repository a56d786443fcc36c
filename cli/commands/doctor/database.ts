/** Checks the database: it exists, belongs to this deployment, and its commits are durable. */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { boundDeployment, openDb, withoutPassword } from '../../../ledger/db/db.js';
import { checkVersion } from '../../../ledger/db/writers.js';
import { readDurability, type PgDurability } from '../../../ledger/db/durability.js';
import { judgeReplication, readReplication } from '../../../ledger/db/replication.js';
import type { Db } from '../../../ledger/types.js';
import { reasonOf, type Report } from './finding.js';

const LOW_DISK_BYTES = 2n ** 30n;
/** Connections that one process may open, plus some for commands. */
export const PROCESS_CONNECTIONS = 15;

/** File systems that lose data on a restart, by Linux's type number. */
const VOLATILE: Readonly<Record<number, string>> = { 0x01021994: 'tmpfs', 0x858458f6: 'ramfs' };
const REMOTE: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB',
  0x01021997: '9p',
  0x65735546: 'FUSE',
};
const LAYERED: Readonly<Record<number, string>> = { 0x794c7630: 'overlayfs' };

export async function checkDatabase(
  { url, deploymentId, requireReplica }: { url: string; deploymentId: string | null; requireReplica: boolean },
  report: Report,
): Promise<void> {
  const name = withoutPassword(url);
  const file = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (file !== undefined) {
    checkDisk(file, report);
    // Nothing is created here; `serve` does that.
    if (!existsSync(file)) return;
  }
  let db: Db;
  try {
    db = await openDb(url, { create: false });
  } catch (error) {
    return report.fail('DATABASE', name, reasonOf(error));
  }
  try {
    const bound = await boundDeployment(db);
    if (bound !== null) await checkVersion(db.knex);
    if (bound !== null && deploymentId !== null && bound !== deploymentId)
      report.fail('DATABASE', name, `belongs to deployment ${bound}, not ${deploymentId}`);
    else report.ok('DATABASE', name, bound === null ? 'is empty' : `holds the ledger of ${bound}`);
    const found = await readDurability(db);
    if (found.kind === 'pg') judgePg(found, name, report);
    else if (found.journal === 'wal' && found.synchronous === 2)
      report.ok('DURABILITY', name, 'journal_mode=wal, synchronous=full');
    else report.fail('DURABILITY', name, `journal_mode=${found.journal}, synchronous=${found.synchronous}`);
    await checkReplicas(db, name, requireReplica, report);
  } catch (error) {
    report.fail('DATABASE', name, reasonOf(error));
  } finally {
    await db.close();
  }
}

function judgePg(found: PgDurability, name: string, report: Report): void {
  const off = [
    ...(found.fsync === 'on' ? [] : [`fsync=${found.fsync}`]),
    ...(found.fullPageWrites === 'on' ? [] : [`full_page_writes=${found.fullPageWrites}`]),
    ...(['off', 'local'].includes(found.synchronousCommit) ? [`synchronous_commit=${found.synchronousCommit}`] : []),
  ];
  if (off.length > 0) report.fail('DURABILITY', name, `PostgreSQL ${found.version} runs with ${off.join(', ')}`);
  else
    report.ok(
      'DURABILITY',
      name,
      `PostgreSQL ${found.version}, fsync and full_page_writes on, synchronous_commit=${found.synchronousCommit}`,
    );
  if (found.isReplica) report.fail('DATABASE', name, 'is a replica, which takes no writes');
  const left = found.maxConnections - found.connections;
  if (left < PROCESS_CONNECTIONS)
    report.warn(
      'DATABASE',
      name,
      `${found.connections} of ${found.maxConnections} connections are taken, and a process opens up to ${PROCESS_CONNECTIONS}`,
    );
}

async function checkReplicas(db: Db, name: string, required: boolean, report: Report): Promise<void> {
  const replication = await readReplication(db);
  if (replication === null) return;
  const { counts, problem, isSynchronous } = judgeReplication(replication);
  if (required && !isSynchronous)
    report.fail('REPLICAS', name, 'REQUIRE_SYNC_REPLICA is set, and no synchronous replica is attached');
  else if (problem !== null) report.fail('REPLICAS', name, problem);
  else if (isSynchronous) report.ok('REPLICAS', name, `${counts.sync} synchronous`);
  else report.warn('REPLICAS', name, 'no replica: what was acknowledged is lost with this server');
}

/** The disk of an SQLite file, or of the folder where it is going to be. */
function checkDisk(file: string, report: Report): void {
  let folder = dirname(resolve(file));
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    const { type, bavail, bsize } = statfsSync(folder, { bigint: true });
    const kind = BigInt.asUintN(32, type).toString();
    const named = (table: Readonly<Record<number, string>>): string | undefined =>
      Object.entries(table).find(([number]) => number === kind)?.[1];
    if (!existsSync(file)) report.ok('DATABASE', file, 'is not there yet; serve creates it');
    const [lost, remote, layered] = [named(VOLATILE), named(REMOTE), named(LAYERED)];
    if (lost !== undefined) report.fail('DURABILITY', folder, `${lost} is lost with the power`);
    else if (remote !== undefined)
      report.fail('DURABILITY', folder, `SQLite must not be on ${remote}: its locks and flushes do not hold there`);
    else if (layered !== undefined)
      report.warn('DURABILITY', folder, `${layered} goes with its container; use a volume`);
    const bytes = bavail * bsize;
    const text = `${bytes / 2n ** 20n} MiB free`;
    if (bytes < LOW_DISK_BYTES) report.warn('DISK', folder, text);
    else report.ok('DISK', folder, text);
  } catch (error) {
    report.fail('DATABASE', folder, reasonOf(error));
  }
}
