import { relative, resolve } from 'node:path';
import { boundDeployment, openDb, withoutPassword } from '../../ledger/db/db.js';
import { backUp, restore } from '../../ledger/db/backup.js';
import { DatabaseError } from '../../ledger/errors.js';
import type { Db } from '../../ledger/types.js';
import type { CommandLine } from '../arguments.js';
import { readEnvironment } from '../config.js';
import { prepareKnownDb } from '../database.js';
import { UsageError } from '../errors.js';
import { commandConfig, print, type Io } from './command.js';
import { interruptible } from './interrupt.js';
import { operatorOf, verifyDatabase } from './verify.js';

/** Writes the database into a new file, while the server goes on. */
export async function runBackup(line: CommandLine, io: Io): Promise<number> {
  const file = fileOf(line);
  const config = commandConfig(line);
  const env = readEnvironment(line.env);
  const { deploymentId } = config.manifest;
  // Opened without migrating the tables, so that the old version can read a backup made before an upgrade.
  const db = await openDb(config.DATABASE_URL, { create: false });
  let bytes: number;
  try {
    await expectDeployment(db, deploymentId, withoutPassword(config.DATABASE_URL));
    bytes = await interruptible(io, 'interrupted; nothing was written', (signal) =>
      backUp(db, { url: config.DATABASE_URL, env }, file, signal),
    );
  } finally {
    await db.close();
  }
  print(io, line, { file, bytes, deploymentId }, [`wrote ${relative(process.cwd(), file)}, ${bytes} bytes`]);
  return 0;
}

/** Restores a backup into an empty database and verifies it. */
export async function runRestore(line: CommandLine, io: Io): Promise<number> {
  const file = fileOf(line);
  const config = commandConfig(line);
  operatorOf(config);
  const { deploymentId } = config.manifest;
  const place = { url: config.DATABASE_URL, env: readEnvironment(line.env) };
  const verdict = await interruptible(io, 'interrupted; nothing was restored', async (signal) => {
    const verdicts: Awaited<ReturnType<typeof verifyDatabase>>[] = [];
    const check = async (db: Db): Promise<boolean> => {
      await expectDeployment(db, deploymentId, file);
      await prepareKnownDb(db, deploymentId);
      const found = await verifyDatabase(db, { config, line, io, signal });
      verdicts.push(found);
      return found.code === 0;
    };
    await restore(file, place, check, signal);
    return verdicts[0]!;
  });
  const { code } = verdict;
  // Not before everything is in its place, or gone from it.
  verdict.say();
  const name = withoutPassword(config.DATABASE_URL);
  io.errors.write(
    code === 0
      ? `restored into ${name}; what happened since the backup is in the archive: curvebook archive check --rpc …\n`
      : `nothing was restored into ${name}, since the backup is not right\n`,
  );
  return code;
}

/** Throws DatabaseError `DEPLOYMENT_UNBOUND` or `DEPLOYMENT_MISMATCH`. */
async function expectDeployment(db: Db, deploymentId: string, name: string): Promise<void> {
  const bound = await boundDeployment(db);
  if (bound === null) throw new DatabaseError('DEPLOYMENT_UNBOUND', `${name} holds no ledger`);
  if (bound !== deploymentId)
    throw new DatabaseError('DEPLOYMENT_MISMATCH', `${name} is of deployment ${bound}, not ${deploymentId}`);
}

function fileOf({ positionals: [file] }: CommandLine): string {
  if (file === undefined) throw new UsageError('name the file of the backup');
  return resolve(file);
}
