/** The tables of every simulated database, made once: migrations take as long as many simulated minutes. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { migrate, openDb } from '../../../ledger/db/db.js';
import { temporaryFolder } from '../processes.js';

let template: Promise<Buffer> | undefined;

/** Writes a database with every table and no row. The real clock must run: the first call migrates. */
export async function writeTemplate(path: string): Promise<void> {
  writeFileSync(path, await (template ??= makeTemplate()));
}

async function makeTemplate(): Promise<Buffer> {
  const folder = temporaryFolder();
  try {
    const file = join(folder, 'template.sqlite');
    const db = await openDb(`sqlite:${file}`);
    await migrate(db);
    await db.close();
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
