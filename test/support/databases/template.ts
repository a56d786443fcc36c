/** An SQLite file with every table and no row, which tests copy: migrations run once for each run of tests. */
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, openDb } from '../../../ledger/db/db.js';

let template: Promise<string> | undefined;

/** Makes the file `path`, which is not there yet, a database with every table. */
export async function copyTemplate(path: string): Promise<void> {
  copyFileSync(await (template ??= makeTemplate()), path);
}

/** All processes of `npm test` share one, beside their code. */
async function makeTemplate(): Promise<string> {
  const shared = process.env.TRANSPILED;
  const folder = shared ?? mkdtempSync(join(tmpdir(), 'curvebook-template-'));
  if (shared === undefined) process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'template.sqlite');
  if (existsSync(file)) return file;
  const partial = join(folder, `template-${process.pid}.sqlite`);
  const db = await openDb(`sqlite:${partial}`);
  await migrate(db);
  await db.close();
  renameSync(partial, file);
  return file;
}
