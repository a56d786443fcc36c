/** What the deployment commands take from the environment, and from the settings that `curvebook init` wrote. */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseEnv } from 'node:util';
import { DeployError } from './errors.js';

export const RPC_VARIABLE = 'DEPLOY_RPC_URL';
export const KEY_VARIABLE = 'DEPLOY_PRIVATE_KEY';
export const EXPLORER_KEY_VARIABLE = 'EXPLORER_API_KEY';

/** Names the record of the deployment; the other files of deployments are beside it. */
const RECORD_VARIABLE = 'MANIFEST';

export interface DeployEnvironment {
  /** Null when it is not set; then `--rpc` must name an endpoint. */
  rpcUrl: string | null;
  /** Null when it is not set; then Hardhat's keystore is asked. */
  privateKey: string | null;
  /** Folder of the files of deployments; null unless a file of settings names the record. */
  deployments: string | null;
}

/**
 * Reads the variables; an empty one counts as absent. `file` has one NAME=value a line and counts for the endpoint and the folder alone: a key
 * is never read from a file. Throws `BAD_ARGUMENT` when it can't be read.
 */
export function readEnvironment(
  file: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): DeployEnvironment {
  const given = (from: Readonly<Record<string, string | undefined>>, name: string): string | null => from[name] || null;
  const settings = file === undefined ? {} : readSettings(file);
  const record = given(settings, RECORD_VARIABLE);
  return {
    rpcUrl: given(env, RPC_VARIABLE) ?? given(settings, RPC_VARIABLE),
    privateKey: given(env, KEY_VARIABLE),
    deployments: record === null ? null : dirname(record),
  };
}

function readSettings(file: string): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch {
    throw new DeployError('BAD_ARGUMENT', `--env: can't read ${file}`);
  }
}
