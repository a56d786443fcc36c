/**
 * One command at a time writes the files of a deployment: each writes the record as it read it, with its own changes, minutes later. The lock is that of an
 * SQLite file, which the operating system lets go with the process, however that ends; the file itself stays, empty.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { DeployError } from '../errors.js';
import { reasonOf } from '../reasons.js';
import type { DeploymentFiles } from '../record.js';

/** Somebody who only looks has the lock for as long as a file takes to be written. */
const WAIT_MS = 500;

/** Takes the lock until the returned function is called; it goes with that function, so keep it. Throws `INTERRUPTED` when another command has it, and `BAD_ARGUMENT` where none can be. */
export function lockFiles({ path, lockPath }: DeploymentFiles): () => void {
  mkdirSync(dirname(lockPath), { recursive: true });
  const unlock = lockedOrRefused(lockPath);
  if (unlock !== null) return unlock;
  throw new DeployError('INTERRUPTED', `another command is at work with ${path}; run again when it has ended`);
}

function lockedOrRefused(path: string): (() => void) | null {
  try {
    return takeLock(path, WAIT_MS);
  } catch (error) {
    throw new DeployError('BAD_ARGUMENT', `--deployments: can't lock ${path}: ${reasonOf(error)}`);
  }
}

/** Null when another holder has the lock. */
function takeLock(path: string, timeout: number): (() => void) | null {
  const lock = new Database(path, { timeout });
  try {
    lock.exec('begin exclusive');
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code === 'SQLITE_BUSY') return null;
    throw error;
  }
  return () => void lock.close();
}

/**
 * The files for a command that only looks, and needs no lock for that. What it learns from the chain it writes if nobody else is at work with the
 * record or has changed it since it was read; whoever comes next learns the same.
 */
export function lookedAt(files: DeploymentFiles): DeploymentFiles {
  let seen = '';
  return {
    ...files,
    read: () => {
      const record = files.read();
      seen = JSON.stringify(record);
      return record;
    },
    write: (record) => {
      const unlock = existsSync(files.path) ? lockOrNull(files.lockPath) : null;
      if (unlock === null) return;
      try {
        if (JSON.stringify(files.read()) === seen) files.write(record);
      } finally {
        unlock();
      }
    },
  };
}

/** Null also where the folder can't be written. */
function lockOrNull(path: string): (() => void) | null {
  try {
    return takeLock(path, 0);
  } catch {
    return null;
  }
}
