/** Files of the archive in a folder: written once, never changed, numbered without gaps. */
import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, readdir, rename, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';
import { ArchiveError, decodeBatch, fileHash, type SignedBatch } from './format.js';

const FILES_PER_FOLDER = 1_000;

export interface ArchiveStore {
  /** Files per folder. The first of a folder names no book of an earlier one, so that whole folders can be removed, oldest first. */
  filesPerFolder: number;
  /** Number of the newest file, 0 for none. */
  lastNumber(): Promise<number>;
  /** Number of the oldest file that is still there, 0 for none. */
  firstNumber(): Promise<number>;
  read(number: number): Promise<Buffer>;
  /**
   * Makes a file durable under its number: it is there whole or not at all. Returns false when the number is taken by another file, so that
   * of two writers only one gets it. After it has failed the file may be there all the same; the same bytes may be written again.
   */
  write(number: number, bytes: Uint8Array): Promise<boolean>;
  /**
   * Makes bytes durable under a name in the folder `set-aside`, which readers of the archive ignore; an existing file of that name stays.
   */
  setAside(name: string, bytes: Uint8Array): Promise<void>;
  /** Removes the folder of a file with all of its files, atomically. Only the oldest folder may be removed. */
  removeFolder(number: number): Promise<void>;
}

const pad = (number: number): string => String(number).padStart(12, '0');
const SET_ASIDE = 'set-aside';
const FOLDER = /^\d{12}$/;
const FILE = /^(\d{12})\.cba$/;

/** The archive in a folder of a POSIX file system, which is made when the first file is written. */
export function createFolderStore(dir: string, filesPerFolder = FILES_PER_FOLDER): ArchiveStore {
  const folderOf = (number: number): string => pad(number - (number % filesPerFolder));
  const fileOf = (number: number): string => `${pad(number)}.cba`;
  const pathOf = (number: number): string => join(dir, folderOf(number), fileOf(number));
  /** Folders that this process has made and whose names may not be durable yet. */
  const unsynced = new Set<string>();

  async function names(path: string): Promise<string[]> {
    try {
      return (await readdir(path)).sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  /** Numbers in the newest folder that has any, or in the oldest. */
  async function numbersIn(end: 'first' | 'last'): Promise<number[]> {
    const folders = (await names(dir)).filter((name) => FOLDER.test(name));
    if (end === 'last') folders.reverse();
    for (const folder of folders) {
      const numbers = (await names(join(dir, folder))).flatMap((name) => {
        const found = FILE.exec(name)?.[1];
        return found === undefined ? [] : [toSafeInt(BigInt(found))];
      });
      if (numbers.length > 0) return numbers;
    }
    return [];
  }

  /** Makes a file durable in a folder, whole or not at all; false where the name is taken by other bytes. */
  async function place(folder: string, name: string, bytes: Uint8Array): Promise<boolean> {
    if ((await mkdir(folder, { recursive: true })) !== undefined) unsynced.add(folder);
    const temporary = join(folder, `.${name}.${randomUUID()}.tmp`);
    const file = await open(temporary, 'w');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    try {
      // Unlike a rename it fails where the name is taken.
      await link(temporary, join(folder, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      // Its own, of a write that failed after this point, is not durable before the folder is synced.
      if (!(await readFile(join(folder, name))).equals(bytes)) return false;
    } finally {
      await unlink(temporary).catch(() => undefined);
    }
    await syncFolder(folder);
    if (unsynced.has(folder)) {
      await syncFolder(dir);
      unsynced.delete(folder);
    }
    return true;
  }

  return {
    filesPerFolder,
    lastNumber: async () => (await numbersIn('last')).at(-1) ?? 0,
    firstNumber: async () => (await numbersIn('first'))[0] ?? 0,
    async read(number) {
      try {
        return await readFile(pathOf(number));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
        throw new ArchiveError('ARCHIVE_DAMAGED', `file ${number} of the archive is missing`);
      }
    },
    write: (number, bytes) => place(join(dir, folderOf(number)), fileOf(number), bytes),
    async setAside(name, bytes) {
      await place(join(dir, SET_ASIDE), name, bytes);
    },
    async removeFolder(number) {
      const folder = folderOf(number);
      // Renamed first, to a name that readers ignore, so that no reader sees half a folder.
      const leaving = join(dir, `.removed-${folder}`);
      await rename(join(dir, folder), leaving);
      await syncFolder(dir);
      await rm(leaving, { recursive: true });
    },
  };
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Every batch in order, or those after a file that was read before, up to the file that is the newest at the call. Each must name the file
 * before it by its hash, but for the first that is still there. Throws ArchiveError `ARCHIVE_DAMAGED` at the first file that is missing or
 * altered, and `ARCHIVE_FOREIGN` for one of another deployment.
 */
export async function* readArchive(
  store: ArchiveStore,
  deploymentId: string,
  after: { number: number; hash: Hex } | null = null,
): AsyncGenerator<SignedBatch> {
  const first = after === null ? await store.firstNumber() : after.number + 1;
  const last = await store.lastNumber();
  let previous = after?.hash ?? null;
  for (let number = first; number > 0 && number <= last; number += 1) {
    const bytes = await store.read(number);
    const signed = decodeBatch(bytes, `file ${number} of the archive`);
    const { batch } = signed;
    if (batch.deploymentId !== deploymentId) {
      throw new ArchiveError(
        'ARCHIVE_FOREIGN',
        `file ${number} is of deployment ${batch.deploymentId}, not ${deploymentId}`,
      );
    }
    if (batch.number !== number || (number === 1) !== (batch.previous === null)) {
      throw new ArchiveError('ARCHIVE_DAMAGED', `file ${number} of the archive says that it is file ${batch.number}`);
    }
    if (previous !== null && batch.previous !== previous) {
      throw new ArchiveError('ARCHIVE_DAMAGED', `file ${number} does not follow file ${number - 1} as it is now`);
    }
    previous = fileHash(bytes);
    yield signed;
  }
}
