/** What the deployment commands take from the environment. */

export const RPC_VARIABLE = 'DEPLOY_RPC_URL';
export const KEY_VARIABLE = 'DEPLOY_PRIVATE_KEY';
export const EXPLORER_KEY_VARIABLE = 'EXPLORER_API_KEY';

export interface DeployEnvironment {
  /** Null when it is not set; then `--rpc` must name an endpoint. */
  rpcUrl: string | null;
  /** Null when it is not set; then Hardhat's keystore is asked. */
  privateKey: string | null;
}

/** Reads the variables; an empty one counts as absent. */
export function readEnvironment(env: Readonly<Record<string, string | undefined>> = process.env): DeployEnvironment {
  const given = (name: string): string | null => (env[name] === undefined || env[name] === '' ? null : env[name]);
  return { rpcUrl: given(RPC_VARIABLE), privateKey: given(KEY_VARIABLE) };
}
