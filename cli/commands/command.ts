/** Helpers that operator commands share. */
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { pino } from 'pino';
import { getAddress } from 'ethers';
import type { Address } from '../../core/types.js';
import { stringify } from '../../core/json.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import { boundDeployment, openDb, withoutPassword } from '../../ledger/db/db.js';
import { readReplicaLag } from '../../ledger/db/replica.js';
import { DatabaseError } from '../../ledger/errors.js';
import type { Db } from '../../ledger/types.js';
import type { CommandLine } from '../arguments.js';
import { prepareKnownDb } from '../database.js';
import { NO_RPC_URL, loadCommandConfig, readEnvironment, type CommandConfig } from '../config.js';
import { ConfigError, UsageError } from '../errors.js';
import { printable } from '../printable.js';
import type { SigningRole } from '../settings/keystore.js';

/** Where a command reads answers and writes what it found. */
export interface Io {
  input: Readable & { isTTY?: boolean };
  output: Writable & { isTTY?: boolean; rows?: number };
  /** Questions, progress and messages, so that `output` has only the result. */
  errors: Writable & { isTTY?: boolean };
  /** Ends a command that goes on until it is interrupted; the process's own signals do as well. */
  signal?: AbortSignal;
}

/** Configuration of a command; `signing` are the roles whose keys it needs. */
export function commandConfig(line: CommandLine, signing: readonly SigningRole[] = []): CommandConfig {
  return loadCommandConfig(line.overrides, readEnvironment(line.env), signing);
}

/**
 * Opens the database of the deployment for one command. Only `serve` creates one, so that a mistyped path is not taken for an empty ledger.
 * Throws DatabaseError, `DEPLOYMENT_UNBOUND` among others, and DatabaseUnreachableError.
 */
export async function withDatabase<T>(config: CommandConfig, run: (db: Db) => Promise<T>): Promise<T> {
  const db = await openDb(config.DATABASE_URL, { create: false });
  try {
    const name = withoutPassword(config.DATABASE_URL);
    if ((await boundDeployment(db)) === null) {
      throw new DatabaseError('DEPLOYMENT_UNBOUND', `${name} holds no ledger yet; curvebook serve creates it`);
    }
    if ((await readReplicaLag(db)).isReplica)
      throw new UsageError(`${name} is a replica, which takes no writes: name the primary`);
    await prepareKnownDb(db, config.manifest.deploymentId);
    return await run(db);
  } finally {
    await db.close();
  }
}

/** The configured endpoints. Failures of one among several are not logged here. Throws ConfigError when there is none. */
export function commandRpc(config: CommandConfig): RpcPool {
  if (config.rpcUrls.length === 0) throw new ConfigError([NO_RPC_URL]);
  const logger = pino({ level: 'silent' });
  return createRpcPool(config.rpcUrls, { nowMs: () => Date.now(), logger, chainId: config.manifest.chainId });
}

/** Prints one value: as JSON, or as equivalent lines of text. */
export function print({ output }: Io, line: CommandLine, value: unknown, text: readonly string[]): void {
  output.write(line.json ? `${stringify(value)}\n` : text.map((one) => `${printable(one)}\n`).join(''));
}

/** Asks on the terminal, unless `--yes` was given. Throws UsageError when there is none. */
export async function confirm({ input, errors }: Io, line: CommandLine, question: string): Promise<boolean> {
  if (line.yes) return true;
  if (input.isTTY !== true) throw new UsageError('nobody to ask on this terminal; pass --yes');
  const prompt = createInterface({ input, output: errors });
  // If the input ends without an answer, the answer is no.
  const ended = new Promise<string>((resolve) => prompt.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([prompt.question(`${question} [y/N] `), ended]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    prompt.close();
  }
}

/** An address argument. Throws ConfigError. */
export function readAddress(text: string | undefined): Address {
  try {
    return getAddress(text ?? '').toLowerCase() as Address;
  } catch {
    throw new UsageError(`not an address: ${text ?? '(none given)'}`);
  }
}
