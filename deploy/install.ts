/** The `deploy` command: puts the contracts on the chain, or what is missing of them, and records them. */
import { getAddress, keccak256 } from 'ethers';
import { CONTRACT_NAMES, PROXIES, PROXY_NAMES, executePlan, planDeployment, proxyCodeHash } from './contracts.js';
import type { DeploymentPlan } from './contracts.js';
import type { DeployConfig } from './config.js';
import { codeOf, currentRecord, describeImplementation } from './context.js';
import type { Context } from './context.js';
import { DeployError } from './errors.js';
import { deploymentIdOf } from './manifest.js';
import type { DeploymentRecord, PendingDeployment } from './record.js';

/**
 * Deploys unless the files say that it is done; then it compares the chain with them. The deployer owns the contracts until it passes
 * them on. Interrupted at any point, it goes on where it stopped when it is run again from the same sources.
 * Throws `WRONG_CHAIN`, `INTERRUPTED`, `CODE_MISMATCH`.
 */
export async function deployCommand(context: Context, config: DeployConfig): Promise<DeploymentRecord> {
  const { chainId, files, log } = context;
  if (config.chainId !== chainId) {
    throw new DeployError('WRONG_CHAIN', `the configuration is for chain ${config.chainId}, this is ${chainId}`);
  }
  if (files.read() !== null) {
    const record = await currentRecord(context);
    log(`deployment ${record.deploymentId} is complete, and its code is what was recorded`);
    return record;
  }
  const pending = await startOrResume(context, config);
  const plan = planDeployment(pending);
  assertSameBuild(plan, pending, context);
  await executePlan(plan, context.signer, log);
  await assertBuilt(context, plan);
  const record = await recordOf(context, plan, pending);
  files.writeLayouts(
    Object.fromEntries(PROXY_NAMES.map((name) => [plan.implementations[name], context.build.layout(PROXIES[name])])),
  );
  files.write(record);
  files.writePending(null);
  log(`deployment ${record.deploymentId} is in ${files.path}`);
  return record;
}

/** The plan's content is durable before its first transaction is sent. */
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
    const proxy = PROXY_NAMES.find((name) => plan.addresses[name] === step.address);
    const actual = keccak256(await provider.getCode(step.address));
    const contract = PROXY_NAMES.find((name) => plan.implementations[name] === step.address);
    const source = contract === undefined ? 'OrderSettler' : PROXIES[contract];
    const expected =
      proxy === undefined ? keccak256(await codeOf(context, source, step.initCode, step.address)) : proxyCodeHash();
    if (actual !== expected) {
      throw new DeployError('CODE_MISMATCH', `${step.name} at ${step.address} has code ${actual}, not ${expected}`);
    }
  }
}

async function recordOf(context: Context, plan: DeploymentPlan, pending: PendingDeployment): Promise<DeploymentRecord> {
  const { provider, chainId, commit } = context;
  const block = await provider.getBlock(pending.firstBlock);
  if (!block?.hash) throw new DeployError('INTERRUPTED', `the chain has no block ${pending.firstBlock} any more`);
  const describe = (name: (typeof PROXY_NAMES)[number]) =>
    describeImplementation(context, PROXIES[name], plan.implementations[name], pending.firstBlock);
  const codeHashes: Record<string, string> = {};
  for (const name of CONTRACT_NAMES) codeHashes[name] = keccak256(await provider.getCode(plan.addresses[name]));
  return {
    chainId,
    deploymentId: deploymentIdOf(chainId, plan.addresses.custodian, block.hash),
    contracts: { ...plan.addresses, permit2: pending.permit2 },
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
    proposed: {},
  };
}
