/**
 * The router of our own for pools of Uniswap v4, whose manager can only be called by a contract that it calls back. It names its manager for good, and no
 * contract depends on it: it is deployed beside the others, or later, by whoever pays for it.
 */
import { concat, getAddress, getCreateAddress, keccak256 } from 'ethers';
import type { Address } from '../core/types.js';
import { uniswapV4 } from '../liquidity/uniswap-v4.js';
import { chainPreset } from './chain-preset.js';
import type { DeployConfig } from './config.js';
import { codeOf, readerOf, type Context } from './context.js';
import { DeployError } from './errors.js';
import type { DeploymentRecord } from './record.js';
import { mined } from './transactions.js';

/** Its name in the record, and that of its source. */
export const V4_ROUTER = { name: 'uniswapV4Router', source: 'UniswapV4Router' } as const;

/** The manager that the configuration names, or the chain's known one where the chain has it; null for none. Throws `BAD_CONFIG` for something else. */
async function managerOf(
  { provider, chainId, log }: Context,
  { uniswapV4PoolManager: configured }: DeployConfig,
): Promise<string | null> {
  const known = configured ?? chainPreset(chainId)?.venues[uniswapV4.name]?.[uniswapV4.parent]?.address;
  if (known === undefined) return null;
  const manager = getAddress(known);
  if ((await provider.getCode(manager)) === '0x') {
    if (configured !== undefined) throw new DeployError('BAD_CONFIG', `uniswapV4PoolManager: nothing is at ${manager}`);
    log(`${uniswapV4.title} is not at ${manager}: it gets no router`);
    return null;
  }
  const problem = (await uniswapV4.inspectParent?.(readerOf(provider), manager.toLowerCase() as Address)) ?? null;
  if (problem !== null) throw new DeployError('BAD_CONFIG', `uniswapV4PoolManager: ${problem}`);
  return manager;
}

/** Constructor arguments of a manager's router, and what deploys it. */
function creationOf({ build }: Context, manager: string): { args: string; initCode: string } {
  const { bytecode, interface: abi } = build.contract(V4_ROUTER.source);
  const args = abi.encodeDeploy([manager]);
  return { args, initCode: concat([bytecode, args]) };
}

/** Shows what `addV4Router` would do with the signer's transaction of this nonce. Sends nothing. */
export async function v4RouterDryRun(context: Context, config: DeployConfig, nonce: number): Promise<void> {
  const manager = await managerOf(context, config);
  const recorded = context.files.read()?.contracts;
  if (manager === null || (recorded !== undefined && isRouted(recorded, manager))) return;
  const { name, source } = V4_ROUTER;
  const address = getCreateAddress({ from: await context.signer.getAddress(), nonce });
  const code = await codeOf(context, source, creationOf(context, manager).initCode, address);
  context.log(`${name} ${address}: ${source} of ${manager}, nonce ${nonce}, code hash ${keccak256(code)}`);
}

const isRouted = ({ uniswapV4PoolManager, uniswapV4Router }: DeploymentRecord['contracts'], manager: string): boolean =>
  uniswapV4Router !== undefined && uniswapV4PoolManager === manager;

/**
 * Deploys the router of the manager, unless the record has it, and returns the record with it, written. If it is interrupted, another run deploys another one.
 * Throws `BAD_CONFIG`, `CODE_MISMATCH`.
 */
export async function addV4Router(
  context: Context,
  config: DeployConfig,
  record: DeploymentRecord,
): Promise<DeploymentRecord> {
  const { provider, signer, files, log } = context;
  const manager = await managerOf(context, config);
  if (manager === null || isRouted(record.contracts, manager)) return record;
  const { name, source } = V4_ROUTER;
  const { args, initCode } = creationOf(context, manager);
  const { contractAddress } = await mined(signer.sendTransaction({ data: initCode }));
  const address = getAddress(contractAddress!);
  const codeHash = keccak256(await provider.getCode(address));
  const expected = keccak256(await codeOf(context, source, initCode, address));
  if (codeHash !== expected)
    throw new DeployError('CODE_MISMATCH', `${name} at ${address} has code ${codeHash}, not ${expected}`);
  log(`${name} ${address} for the manager ${manager}; run configure, so that the settler may call it`);
  const routed: DeploymentRecord = {
    ...record,
    contracts: { ...record.contracts, uniswapV4PoolManager: manager, uniswapV4Router: address },
    codeHashes: { ...record.codeHashes, [name]: codeHash },
    constructorArgs: { ...record.constructorArgs, [name]: args },
  };
  files.write(routed);
  return routed;
}
