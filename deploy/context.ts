/** What every deployment command works with. */
import { getAddress, keccak256 } from 'ethers';
import type { Provider, Signer } from 'ethers';
import { toSafeInt } from '../core/amounts.js';
import type { EthReader } from '../liquidity/eth.js';
import { codeAt, immutableValues } from './build.js';
import type { Build } from './build.js';
import { PROXY_NAMES, implementationOf } from './contracts.js';
import type { ProxyName } from './contracts.js';
import { DeployError } from './errors.js';
import { deploymentFiles } from './record.js';
import type { DeploymentFiles, DeploymentRecord, ImplementationRecord, ProposedRecord } from './record.js';

/** A provider that passes any JSON-RPC request on. */
export type RpcProvider = Provider & { send(method: string, params: unknown[]): Promise<unknown> };

export const readerOf = (provider: RpcProvider): EthReader => ({
  call: (method, params = []) => provider.send(method, params),
  batch: (requests) => Promise.all(requests.map(({ method, params }) => provider.send(method, params))),
});

export interface Context {
  provider: RpcProvider;
  signer: Signer;
  build: Build;
  chainId: number;
  files: DeploymentFiles;
  /** Git commit of the sources that the build is made from. */
  commit: string;
  log: (line: string) => void;
}

interface ContextOptions {
  provider: RpcProvider;
  signer: Signer;
  build: Build;
  /** Where the files of deployments are. */
  folder: string;
  commit: string;
  log: (line: string) => void;
}

/** Completes the context with the chain's id, as the endpoint answers it. */
export async function createContext({ folder, ...options }: ContextOptions): Promise<Context> {
  const chainId = toSafeInt((await options.provider.getNetwork()).chainId);
  return { ...options, chainId, files: deploymentFiles(folder, chainId) };
}

/** What a command does with the calls that only the owner may make: show them, prepare them for the owner, or send them. */
export type Mode = 'dry-run' | 'propose' | 'send';

/**
 * The record of this chain's deployment, after all code on the chain was compared with it. If the owner has upgraded to an implementation that was
 * proposed, or that ran before, the record is updated. Throws `NOT_DEPLOYED`, or `CODE_MISMATCH` when the chain has other code.
 */
export async function currentRecord(context: Context): Promise<DeploymentRecord> {
  const { provider, files, chainId } = context;
  const record = files.read();
  if (record === null)
    throw new DeployError('NOT_DEPLOYED', `nothing is deployed on chain ${chainId}: no ${files.path}`);
  if (record.chainId !== chainId) throw new DeployError('WRONG_CHAIN', `${files.path} is of chain ${record.chainId}`);
  await assertCode(provider, 'deployment', record.contracts, record.codeHashes);
  let adopted = false;
  for (const name of PROXY_NAMES) adopted = (await adoptProposed(context, record, name)) || adopted;
  if (adopted) files.write(record);
  return record;
}

/** Whether the chain has the implementation at its address. */
export async function isOnChain(provider: Provider, { address, codeHash }: ImplementationRecord): Promise<boolean> {
  return keccak256(await provider.getCode(address)) === codeHash;
}

/** Throws `CODE_MISMATCH` unless the chain has the implementation at its address. */
export async function assertOnChain(provider: Provider, implementation: ImplementationRecord): Promise<void> {
  if (await isOnChain(provider, implementation)) return;
  const { contract, address, codeHash } = implementation;
  throw new DeployError('CODE_MISMATCH', `${address} of ${contract} does not have the code ${codeHash}`);
}

async function assertCode(
  provider: Provider,
  what: string,
  at: Record<string, string>,
  codeHashes: Record<string, string>,
): Promise<void> {
  for (const [name, expected] of Object.entries(codeHashes)) {
    const address = at[name];
    const actual = address === undefined ? null : keccak256(await provider.getCode(address));
    if (actual !== expected) {
      throw new DeployError(
        'CODE_MISMATCH',
        `${what}: the code of ${name} at ${address} is ${actual}, not ${expected}`,
      );
    }
  }
}

/** @returns whether the record changed */
async function adoptProposed({ provider, log }: Context, record: DeploymentRecord, name: ProxyName): Promise<boolean> {
  const live = await implementationOf(provider, record.contracts[name]);
  const earlier = record.previous[name] ?? [];
  const proposed = record.proposed[name] ?? [];
  const all: ProposedRecord[] = [record.implementations[name], ...proposed, ...earlier];
  const known = all.find((one) => one.address === live);
  if (known === undefined) {
    throw new DeployError('CODE_MISMATCH', `${name} runs ${live}, which is not in the record of the deployment`);
  }
  await assertCode(provider, name, { implementation: live }, { implementation: known.codeHash });
  if (known === record.implementations[name]) return false;
  (record.previous[name] ??= []).push(record.implementations[name]);
  const { call: _, ...implementation } = known;
  record.implementations[name] = implementation;
  // Other proposals stay in the record: the owner may still execute them.
  const waiting = proposed.filter(({ address }) => address !== live);
  if (waiting.length === 0) delete record.proposed[name];
  else record.proposed[name] = waiting;
  log(`${name} runs ${known.contract} ${live} now`);
  return true;
}

/** Runs a constructor without deploying anything, and returns the runtime code with the address of the copy set to `address`. */
export async function codeOf(
  { provider, signer, build }: Pick<Context, 'provider' | 'signer' | 'build'>,
  contract: string,
  initCode: string,
  address: string,
): Promise<string> {
  const from = await signer.getAddress();
  const code = (await provider.send('eth_call', [{ from, data: initCode }, 'latest'])) as string;
  return codeAt(address, code, build.contract(contract).immutables);
}

/** Describes an implementation that is on the chain. */
export async function describeImplementation(
  { provider, build, commit }: Context,
  contract: string,
  address: string,
  block: number,
  constructorArgs: string,
): Promise<ImplementationRecord> {
  const code = await provider.getCode(address);
  const immutables = immutableValues(code, build.contract(contract).immutables);
  return {
    contract,
    address: getAddress(address),
    codeHash: keccak256(code),
    block,
    commit,
    constructorArgs,
    immutables,
  };
}
