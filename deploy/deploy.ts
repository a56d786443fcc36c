/**
 * Deploys the contracts, lists markets and sets the roles at once, on a local chain that nobody else uses: the sandbox's and those of tests. The
 * deployment commands (deploy/commands.ts) take the same steps one by one.
 */
import { getAddress, type Signer } from 'ethers';
import { toSafeInt } from '../core/amounts.js';
import { sendActions } from './actions.js';
import { PERMIT2_ADDRESS } from './sandbox/canonical.js';
import { configureActions, type PlatformConfig } from './configure.js';
import { connectContracts, executePlan, planDeployment, providerOf, type Contracts } from './contracts.js';
import { listingOf, manifestToken, type DeployMarket } from './listing.js';
import { deploymentIdOf, type DeploymentManifest, type ManifestToken } from './manifest.js';
import { transferActions } from './ownership.js';

export type { DeployMarket } from './listing.js';

export interface DeployOptions {
  /** Pays for everything; owns the contracts until `owner` accepts. */
  deployer: Signer;
  /** Becomes the owner at once when it is the deployer; else it must call acceptOwnership on each contract. */
  owner: string;
  /** May post curves. */
  curvePosters: readonly string[];
  /** May settle withdrawals. */
  claimPosters: readonly string[];
  /** May execute signed orders; none by default. */
  executors?: readonly string[];
  /** External contracts that the settler may call; none by default. */
  targets?: readonly string[];
  /** Where Permit2 is; its canonical address by default. */
  permit2?: string;
  withdrawDelaySec: number;
  tokens: readonly ManifestToken[];
  markets: readonly DeployMarket[];
  /** One line per step. */
  log: (line: string) => void;
}

export interface Deployment extends Contracts {
  manifest: DeploymentManifest;
}

/** Deploys and configures everything. Throws when the chain disagrees with what was predicted; nothing is retried. */
export async function deployCurvebook(options: DeployOptions): Promise<Deployment> {
  const { deployer, tokens, markets, withdrawDelaySec, log } = options;
  for (const market of markets) listingOf(market, tokens);
  const provider = providerOf(deployer);
  const from = await deployer.getAddress();
  const permit2 = options.permit2 ?? PERMIT2_ADDRESS;
  // Anybody can deploy Permit2 at its address at any time, so its absence is no error.
  if ((await provider.getCode(permit2)) === '0x')
    log(`no Permit2 at ${permit2} yet: signed orders have to wait for it`);

  const firstNonce = await provider.getTransactionCount(from);
  const firstBlock = (await provider.getBlockNumber()) + 1;
  const plan = planDeployment({ deployer: from, firstNonce, permit2, withdrawDelaySec });
  await executePlan(plan, deployer, log);
  const config: PlatformConfig = { targets: [], takerFees: [], executors: [], ...options };
  await sendActions(await configureActions(provider, plan.addresses, config, firstBlock), deployer, log);
  if (getAddress(options.owner) !== from) {
    await sendActions(await transferActions(provider, plan.addresses, options.owner), deployer, log);
    log(`${options.owner} must call acceptOwnership() on the four contracts to own them`);
  }

  const chainId = toSafeInt((await provider.getNetwork()).chainId);
  const block = await provider.getBlock(firstBlock);
  if (!block?.hash) throw new Error(`block ${firstBlock} is gone`);
  const manifest: DeploymentManifest = {
    chainId,
    deploymentId: deploymentIdOf(chainId, plan.addresses.custodian, block.hash),
    contracts: { ...plan.addresses, ...plan.periphery, permit2: getAddress(permit2) },
    deploymentBlock: firstBlock,
    tokens: tokens.map(manifestToken),
    markets: markets.map(({ pair, tickSize, lotSize }) => ({ pair, tickSize, lotSize })),
  };
  return { ...connectContracts(plan.addresses, deployer), manifest };
}
