/** Submits the sources of a deployment to an explorer, by Hardhat's plugin. */
import { verifyContract } from '@nomicfoundation/hardhat-verify/verify';
import { AbiCoder } from 'ethers';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import project from '../../hardhat.config.js';
import type { Build } from '../build.js';
import { DeployError } from '../errors.js';
import type { Explorer, VerificationTarget } from './verify.js';

interface OnlineOptions {
  rpcUrl: string;
  chainId: number;
  explorer: Explorer;
  /** URL of the explorer's API, if Hardhat does not know it by the chain's id. */
  apiUrl?: string;
  /** Empty if the explorer needs none. */
  apiKey: string;
  log: (line: string) => void;
}

/** Submits the sources that the explorer does not have yet, one after the other. Throws `UNVERIFIED` with all refusals. */
export async function submitSources(
  build: Build,
  targets: readonly VerificationTarget[],
  { rpcUrl, chainId, explorer, apiUrl, apiKey, log }: OnlineOptions,
): Promise<void> {
  const known = { name: explorer, url: apiUrl ?? '', apiUrl };
  const chain = { name: `chain ${chainId}`, chainType: 'generic' as const, blockExplorers: { [explorer]: known } };
  const hre = await createHardhatRuntimeEnvironment(
    {
      ...project,
      networks: { ...project.networks, target: { type: 'http', url: rpcUrl } },
      verify: {
        etherscan: explorer === 'etherscan' ? { apiKey } : { enabled: false },
        sourcify: apiUrl !== undefined && explorer === 'sourcify' ? { apiUrl } : {},
      },
      ...(apiUrl === undefined || explorer === 'sourcify' ? {} : { chainDescriptors: { [chainId]: chain } }),
    },
    { network: 'target' },
  );
  const problems: string[] = [];
  for (const { name, address, contract, constructorArguments } of targets) {
    const { source, interface: abi } = build.contract(contract);
    const constructorArgs = AbiCoder.defaultAbiCoder().decode(abi.deploy.inputs, `0x${constructorArguments}`).toArray();
    try {
      await verifyContract({ address, constructorArgs, contract: `${source}:${contract}`, provider: explorer }, hre);
      log(`${name} ${address} is verified`);
    } catch (error) {
      problems.push(`${name} ${address}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (problems.length !== 0) throw new DeployError('UNVERIFIED', problems.join('\n'));
}
