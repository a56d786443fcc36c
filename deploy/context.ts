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
import { historyOf } from './upgrade/history.js';
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
 * The record of this chain's deployment, after all code on the chain was compared with it. If the owner has upgraded to implementations that were
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
async function adoptProposed(context: Context, record: DeploymentRecord, name: ProxyName): Promise<boolean> {
  const { provider, log } = context;
  const live = await implementationOf(provider, record.contracts[name]);
  const recorded = record.implementations[name];
  const proposed = record.proposed[name] ?? [];
  const all: ProposedRecord[] = [recorded, ...proposed, ...(record.previous[name] ?? [])];
  const known = all.find((one) => one.address === live);
  if (known === undefined) {
    throw new DeployError('CODE_MISMATCH', `${name} runs ${live}, which is not in the record of the deployment`);
  }
  await assertCode(provider, name, { implementation: live }, { implementation: known.codeHash });
  const isOther = known !== recorded;
  if (!isOther && proposed.length === 0) return false;
  const left = await leftBehind(context, record, name, live);
  if (!isOther && left.length === 0) return false;
  if (left.length !== 0) (record.previous[name] ??= []).push(...left);
  record.implementations[name] = withoutCall(known);
  // Other proposals stay in the record: the owner may still execute them.
  const done = new Set([...left.map(({ address }) => address), ...(isOther ? [live] : [])]);
  const waiting = proposed.filter(({ address }) => !done.has(address));
  // What only a copy of the chain had, or what a reorganisation took back, did not run here; a reorganisation may bring it back.
  const isKept = [...done, ...waiting.map(({ address }) => address)].includes(recorded.address);
  if (isOther && !isKept) waiting.push(recorded);
  if (waiting.length === 0) delete record.proposed[name];
  else record.proposed[name] = waiting;
  for (const { contract, address } of left)
    if (address !== recorded.address) log(`${name} ran ${contract} ${address} meanwhile`);
  if (isOther) log(`${name} runs ${known.contract} ${live} now`);
  return true;
}

/**
 * What a proxy has run and runs no more, as far as the record does not say so yet, oldest first: what it ran by the record, and what the owner executed
 * after that, or executed and replaced before any command looked. What the endpoint hides stays in the record as it is.
 */
async function leftBehind(
  { provider, log }: Context,
  record: DeploymentRecord,
  name: ProxyName,
  live: string,
): Promise<ImplementationRecord[]> {
  const recorded = record.implementations[name];
  const [proposed, earlier] = [record.proposed[name] ?? [], record.previous[name] ?? []];
  const { ran, problem } = await historyOf(provider, record, name);
  const since = ran.lastIndexOf(recorded.address);
  if (ran.at(-1) !== live || (since === -1 && (await isOnChain(provider, recorded)))) {
    const reason = problem === null ? '' : `: ${problem}`;
    log(
      `${name}: the endpoint does not tell all that it has run since block ${record.deploymentBlock}: ` +
        `what ran and runs no more may still be listed as proposed${reason}`,
    );
  }
  const has = (list: readonly ImplementationRecord[], address: string): boolean =>
    list.some((one) => one.address === address);
  const isNews = (address: string, at: number): boolean =>
    (since !== -1 && at >= since) || (has(proposed, address) && !has([recorded, ...earlier], address));
  const addresses = ran.filter((address, at) => address !== live && isNews(address, at));
  if (since === -1 && recorded.address !== live) addresses.unshift(recorded.address);
  const left: ImplementationRecord[] = [];
  for (const address of addresses) {
    const one = [recorded, ...proposed, ...earlier].find((known) => known.address === address);
    if (one === undefined)
      log(`${name} ran ${address} meanwhile, which is not in the record: no storage is judged by it`);
    else if (await isOnChain(provider, one)) left.push(withoutCall(one));
  }
  return left;
}

function withoutCall({ call: _, ...implementation }: ProposedRecord): ImplementationRecord {
  return implementation;
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
