/** One sandbox per folder: its manifest, its logs and its default database can't be shared. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { z } from 'zod';
import { startedHere } from './database.js';

/** Where a sandbox can be reached. */
interface SandboxPlace {
  serverUrl: string;
  rpcUrl: string;
}

/** Another sandbox has the folder. */
export class SandboxRunningError extends Error {
  readonly code = 'SANDBOX_RUNNING';
  constructor(directory: string, what: string, remedy: string) {
    super(`${what} in ${directory} already; ${remedy}, or choose another folder by SANDBOX_DIR`);
    this.name = 'SandboxRunningError';
  }
}

const PLACE_FILE = 'sandbox-running.json';
const PROBE_TIMEOUT_MS = 2_000;
const placeSchema = z.object({ serverUrl: z.url(), rpcUrl: z.url(), pid: z.int() });

/**
 * Takes the folder for as long as this process lives, or until the returned function is called. The lock is that of an SQLite file, which the
 * operating system lets go with the process, however that ends; where the holder is stands beside it. A server that has outlived its console, or
 * was started by hand, uses the folder's database, too. Throws SandboxRunningError for either.
 */
export async function lockSandbox(directory: string, place: SandboxPlace): Promise<() => void> {
  mkdirSync(directory, { recursive: true });
  const earlier = readPlace(directory);
  const at = earlier === null ? 'it is still starting' : `server ${earlier.serverUrl}, chain ${earlier.rpcUrl}`;
  const lock = new Database(join(directory, 'sandbox.lock'), { timeout: 0 });
  try {
    lock.exec('begin exclusive');
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
    const what = `a sandbox (${at}${earlier === null ? '' : `, process ${earlier.pid}`}) runs`;
    throw new SandboxRunningError(directory, what, 'stop it with Ctrl-C');
  }
  if (earlier !== null && (await servesDatabaseOf(directory, earlier.serverUrl))) {
    lock.close();
    const what = `a server of an earlier sandbox (${at}) runs`;
    throw new SandboxRunningError(directory, what, 'stop it');
  }
  writeFileSync(join(directory, PLACE_FILE), JSON.stringify({ ...place, pid: process.pid }));
  return () => void lock.close();
}

function readPlace(directory: string): z.output<typeof placeSchema> | null {
  try {
    return placeSchema.parse(JSON.parse(readFileSync(join(directory, PLACE_FILE), 'utf8')));
  } catch {
    return null;
  }
}

/** Whether what answers there serves a deployment that was started in this folder. */
async function servesDatabaseOf(directory: string, serverUrl: string): Promise<boolean> {
  try {
    const answer = await fetch(`${serverUrl}/health`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    const { deployment_id: id } = (await answer.json()) as { deployment_id?: unknown };
    return typeof id === 'string' && startedHere(directory).includes(id);
  } catch {
    return false;
  }
}
