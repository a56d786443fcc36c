/** The `deploy` command: deploys the contracts, or those that are missing, and records them. */
import { getAddress, keccak256 } from 'ethers';
import { FIXED_NAMES, PROXIES, PROXY_NAMES, executePlan, planDeployment } from './contracts.js';
import type { DeploymentPlan } from './contracts.js';
import type { DeployConfig } from './config.js';
import { codeOf, currentRecord, describeImplementation } from './context.js';
import type { Context } from './context.js';
import { DeployError } from './errors.js';
import { deploymentIdOf } from './manifest.js';
import type { DeploymentRecord, PendingDeployment } from './record.js';
import { addV4Router, v4RouterDryRun } from './uniswap-v4.js';

/** Shows what `deployCommand` would do, provided that the deployer's key sends nothing else before. Sends and writes nothing. */
export async function deployDryRun(context: Context, config: DeployConfig): Promise<DeploymentPlan | null> {
  const { chainId, provider, signer, files, log } = context;
  assertChain(context, config);
  if (files.read() !== null) {
    log(`chain ${chainId} has a deployment already: ${files.path}`);
    await v4RouterDryRun(context, config, await provider.getTransactionCount(await signer.getAddress()));
    return null;
  }
  for (const name of PROXY_NAMES) context.build.assertUpgradeSafe(PROXIES[name]);
  const deployer = getAddress(await signer.getAddress());
  const firstNonce = await provider.getTransactionCount(deployer);
  const { permit2, withdrawDelaySec } = config;
  const earlier = files.readPending();
  const goesOn = earlier !== null && (await anythingDeployed(context, earlier));
  const plan = planDeployment(goesOn ? earlier : { deployer, firstNonce, permit2, withdrawDelaySec });
  log(`deployed by ${plan.deployer}, from nonce ${plan.steps[0]?.nonce} on`);
  for (const { name, source, address, nonce, initCode } of plan.steps) {
    const done = (await provider.getCode(address)) !== '0x';
    const { immutables, runtime } = context.build.contract(source);
    // A proxy's constructor can't be run before its implementation is deployed. It has no immutables, so its code is known without that.
    const code = immutables.length === 0 ? runtime : await codeOf(context, source, initCode, address);
    const what = `${name} ${address}: ${source}, nonce ${nonce}, code hash ${keccak256(code)}, ${(code.length - 2) / 2} bytes`;
    log(done ? `${what} (there already)` : what);
  }
  await v4RouterDryRun(context, config, plan.steps[0]!.nonce + plan.steps.length);
  return plan;
}

function assertChain({ chainId }: Context, config: DeployConfig): void {
  if (config.chainId === chainId) return;
  throw new DeployError('WRONG_CHAIN', `the configuration is for chain ${config.chainId}, this is ${chainId}`);
}

/**
 * Deploys, unless the files say that this is done; in that case it compares the chain with them. The deployer owns the contracts until it
 * transfers them. If it is interrupted, another run from the same sources continues.
 * Throws `WRONG_CHAIN`, `INTERRUPTED`, `CODE_MISMATCH`.
 */
export async function deployCommand(context: Context, config: DeployConfig): Promise<DeploymentRecord> {
  const { files, log } = context;
  assertChain(context, config);
  if (files.read() !== null) {
    const complete = await currentRecord(context);
    log(`deployment ${complete.deploymentId} is complete, and its code is what was recorded`);
    return addV4Router(context, config, complete);
  }
  const pending = await startOrResume(context, config);
  const plan = planDeployment(pending);
  assertSameBuild(plan, pending, context);
  await executePlan(plan, context.signer, log).catch((error: unknown) => {
    if (!(error instanceof DeployError) || error.code !== 'INTERRUPTED') throw error;
    throw new DeployError(
      'INTERRUPTED',
      'run it again first: an endpoint that is a block behind causes the same. Only if it stops at the same step again: ' +
        `${error.message}. To start over, remove ${files.pendingPath} first`,
    );
  });
  await assertBuilt(context, plan);
  const record = await recordOf(context, plan, pending);
  files.writeLayouts(
    Object.fromEntries(PROXY_NAMES.map((name) => [plan.implementations[name], context.build.layout(PROXIES[name])])),
  );
  files.write(record);
  files.writePending(null);
  log(`deployment ${record.deploymentId} is in ${files.path}`);
  return addV4Router(context, config, record);
}

/** The plan of this deployment, written to its file before the first transaction is sent; or the one in the file, to be continued. */
async function startOrResume(context: Context, config: DeployConfig): Promise<PendingDeployment> {
  const { provider, signer, files, commit, log } = context;
  const deployer = getAddress(await signer.getAddress());
  const earlier = files.readPending();
  if (earlier !== null) {
    if (await anythingDeployed(context, earlier)) {
      if (earlier.deployer !== deployer) {
        throw new DeployError('INTERRUPTED', `${earlier.deployer} began this deployment, not ${deployer}`);
      }
      log(`going on with the deployment that began at nonce ${earlier.firstNonce}`);
      return earlier;
    }
    log('the interrupted deployment had deployed nothing; starting over');
  }
  if ((await provider.getCode(config.permit2)) === '0x') {
    log(`no Permit2 at ${config.permit2} yet: signed orders have to wait for it`);
  }
  for (const name of PROXY_NAMES) context.build.assertUpgradeSafe(PROXIES[name]);
  const options = {
    deployer,
    firstNonce: await provider.getTransactionCount(deployer),
    permit2: config.permit2,
    withdrawDelaySec: config.withdrawDelaySec,
  };
  const initCodeHashes = planDeployment(options).steps.map(({ initCode }) => keccak256(initCode));
  const pending = { ...options, firstBlock: (await provider.getBlockNumber()) + 1, commit, initCodeHashes };
  files.writePending(pending);
  return pending;
}

async function anythingDeployed({ provider }: Context, pending: PendingDeployment): Promise<boolean> {
  for (const { address } of planDeployment(pending).steps) {
    if ((await provider.getCode(address)) !== '0x') return true;
  }
  return false;
}

function assertSameBuild(plan: DeploymentPlan, pending: PendingDeployment, { commit }: Context): void {
  const changed = plan.steps.find(({ initCode }, i) => keccak256(initCode) !== pending.initCodeHashes[i]);
  if (changed === undefined) return;
  throw new DeployError(
    'INTERRUPTED',
    `${changed.name} was built from ${pending.commit} when this deployment began, and differently from ${commit} now; ` +
      'go on from those sources, or remove the pending file to start over',
  );
}

/** Compares what is on the chain with what the sources build, by running the constructors again. */
async function assertBuilt(context: Context, plan: DeploymentPlan): Promise<void> {
  const { provider } = context;
  for (const step of plan.steps) {
    const { source, initCode, address } = step;
    const actual = keccak256(await provider.getCode(address));
    const expected = keccak256(await codeOf(context, source, initCode, address));
    if (actual !== expected) {
      throw new DeployError('CODE_MISMATCH', `${step.name} at ${step.address} has code ${actual}, not ${expected}`);
    }
  }
}

async function recordOf(context: Context, plan: DeploymentPlan, pending: PendingDeployment): Promise<DeploymentRecord> {
  const { provider, chainId, commit } = context;
  const block = await provider.getBlock(pending.firstBlock);
  if (!block?.hash) throw new DeployError('INTERRUPTED', `the chain has no block ${pending.firstBlock} any more`);
  const argsOf = (address: string): string => plan.steps.find((step) => step.address === address)?.args ?? '0x';
  const describe = (name: (typeof PROXY_NAMES)[number]) => {
    const address = plan.implementations[name];
    return describeImplementation(context, PROXIES[name], address, pending.firstBlock, argsOf(address));
  };
  const codeHashes: Record<string, string> = {};
  const constructorArgs: Record<string, string> = {};
  const fixed = { ...plan.addresses, ...plan.periphery };
  for (const name of FIXED_NAMES) {
    codeHashes[name] = keccak256(await provider.getCode(fixed[name]));
    constructorArgs[name] = argsOf(fixed[name]);
  }
  return {
    chainId,
    deploymentId: deploymentIdOf(chainId, plan.addresses.custodian, block.hash),
    contracts: { ...fixed, permit2: pending.permit2 },
    deploymentBlock: pending.firstBlock,
    deploymentBlockHash: block.hash,
    deployer: plan.deployer,
    commit,
    tokens: [],
    markets: [],
    implementations: {
      custodian: await describe('custodian'),
      curveBook: await describe('curveBook'),
      entrypoint: await describe('entrypoint'),
    },
    previous: {},
    codeHashes,
    constructorArgs,
    proposed: {},
  };
}
