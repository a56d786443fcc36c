/**
 * The `upgrade` command. What the sources build is compared with what the proxies run; where they differ, the new implementation must
 * pass OpenZeppelin's checks, its storage layout against the one that is live, and a trial call, before the owner's call is sent or
 * prepared. An implementation by itself has no rights, so anybody may deploy it.
 */
import { concat, getCreateAddress, keccak256 } from 'ethers';
import { actionOn, assertOwner, sendActions, type Action } from '../actions.js';
import { immutableValues } from '../build.js';
import {
  assertOnChain,
  codeOf,
  currentRecord,
  describeImplementation,
  isOnChain,
  type Context,
  type Mode,
} from '../context.js';
import {
  PROXIES,
  PROXY_NAMES,
  connectContracts,
  constructorArgs,
  ownershipOf,
  type Addresses,
  type ProxyName,
} from '../contracts.js';
import { DeployError } from '../errors.js';
import { reasonOf } from '../reasons.js';
import { addProposal, type DeploymentRecord, type ImplementationRecord } from '../record.js';
import { mined } from '../transactions.js';
import { thenCalls } from '../owner/summaries.js';
import { assertLayoutSafe, assertRelated, layoutDifference, recordedLayout } from './storage.js';

/** The custodian's implementation comes last: it has the addresses of the other two, to which it refuses to pay. */
const UPGRADE_ORDER: readonly ProxyName[] = ['curveBook', 'entrypoint', 'custodian'];

export interface UpgradeOptions {
  mode: Mode;
  /** Which proxies to look at; all of them by default. */
  only?: readonly ProxyName[];
  /** Sources of the new implementations where they have other names than the ones deployed first. */
  sources?: Partial<Record<ProxyName, string>>;
  /** Call data that the proxy runs on its new implementation within the upgrade, for instance a reinitializer. */
  calls?: Partial<Record<ProxyName, string>>;
}

interface PlannedUpgrade {
  name: ProxyName;
  proxy: string;
  contract: string;
  before: ImplementationRecord;
  /** ABI-encoded. */
  constructorArgs: string;
  initCode: string;
  /** Its address; if it is not deployed yet, the one it will have if the signer sends nothing else before. */
  address: string;
  /** Null when it still has to be deployed. */
  deployed: ImplementationRecord | null;
  codeHash: string;
  call: string;
  /** For people: one line per change. */
  changes: string[];
}

/** Plans, shows the plan, and then does what `mode` says. Returns the calls that the owner has to make; they are made in mode `send`. */
export async function upgradeCommand(
  context: Context,
  { mode, only = PROXY_NAMES, sources = {}, calls = {} }: UpgradeOptions,
): Promise<Action[]> {
  const { signer, files, log } = context;
  const record = await currentRecord(context);
  const plans: PlannedUpgrade[] = [];
  const { custodian, curveBook, entrypoint } = record.implementations;
  const codes = { custodian: custodian.address, curveBook: curveBook.address, entrypoint: entrypoint.address };
  let nonce = await signer.getNonce();
  for (const name of [...only].sort((a, b) => UPGRADE_ORDER.indexOf(a) - UPGRADE_ORDER.indexOf(b))) {
    const args = constructorArgs(name, record.contracts, codes);
    const call = calls[name] ?? '0x';
    const plan = await planUpgrade(context, record, {
      name,
      contract: sources[name] ?? PROXIES[name],
      args,
      call,
      nonce,
    });
    if (plan === null) {
      log(`${name}: the sources build what it runs`);
      continue;
    }
    if (plan.deployed === null) nonce += 1;
    codes[name] = plan.address;
    plans.push(plan);
    for (const line of plan.changes) log(line);
  }
  if (plans.length !== 0 && !only.includes('custodian')) {
    log('custodian: it goes on paying to implementations that came after its own; upgrade it, too');
  }
  const actions: Action[] = [];
  for (const plan of plans) actions.push(await upgradeAction(context, record, plan));
  if (mode === 'dry-run' || actions.length === 0) return actions;

  if (mode === 'send') await assertOwner(actions, signer);
  for (const plan of plans) {
    plan.deployed ??= await deployImplementation(context, plan);
    addProposal(record, plan.name, plan.deployed, plan.call);
    files.writeLayouts({ ...files.readLayouts(), [plan.address]: context.build.layout(plan.contract) });
    files.write(record);
    await rehearse(context, await upgradeAction(context, record, plan));
  }
  if (mode === 'propose') return actions;
  await sendActions(actions, signer, log);
  await currentRecord(context);
  return actions;
}

interface Successor {
  name: ProxyName;
  /** Name of its source. */
  contract: string;
  args: readonly unknown[];
  call: string;
  /** The signer's, if it must be deployed. */
  nonce: number;
}

/** The plan for one proxy; null if it runs this implementation already. Throws `UNSAFE_UPGRADE` or `LAYOUT_UNKNOWN`. */
async function planUpgrade(
  context: Context,
  record: DeploymentRecord,
  { name, contract, args, call, nonce }: Successor,
): Promise<PlannedUpgrade | null> {
  const { build, provider, signer } = context;
  const before = record.implementations[name];
  const built = build.contract(contract);
  const encodedArgs = built.interface.encodeDeploy(args);
  const initCode = concat([built.bytecode, encodedArgs]);
  const codeIf = (address: string): Promise<string> => codeOf(context, contract, initCode, address);
  if (keccak256(await codeIf(before.address)) === before.codeHash) return null;

  build.assertUpgradeSafe(contract);
  // An equal implementation that was deployed for an earlier proposal, or that ran before, is used again if the chain has it: the record may
  // be that of a rehearsal on a copy of the chain, or name what a reorganisation took back.
  let deployed: ImplementationRecord | null = null;
  for (const one of [...(record.previous[name] ?? []), ...(record.proposed[name] ?? [])]) {
    const isEqual = keccak256(await codeIf(one.address)) === one.codeHash;
    if (isEqual && (await isOnChain(provider, one))) deployed = one;
  }
  const address = deployed?.address ?? getCreateAddress({ from: await signer.getAddress(), nonce });
  const code = await codeIf(address);
  const liveCode = await provider.getCode(before.address);
  const values = immutableValues(code, built.immutables);
  return {
    name,
    proxy: record.contracts[name],
    contract,
    before,
    constructorArgs: encodedArgs,
    initCode,
    address,
    deployed,
    codeHash: keccak256(code),
    call,
    changes: [
      `${name} ${record.contracts[name]}: ${before.contract} of ${before.commit} -> ${contract} of ${context.commit}`,
      `  implementation ${before.address} -> ${address}${deployed === null ? '' : ' (deployed)'}`,
      `  code hash ${before.codeHash} -> ${keccak256(code)}`,
      `  code size ${byteLength(liveCode)} -> ${byteLength(code)} bytes`,
      ...immutableChanges(before.immutables, values),
      ...(await layoutChanges(context, record, { name, contract, address })),
      `  then calls ${call === '0x' ? 'nothing' : call}`,
    ],
  };
}

function byteLength(code: string): number {
  return (code.length - 2) / 2;
}

function immutableChanges(before: Record<string, string>, after: Record<string, string>): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].map((key) => {
    const [from, to] = [before[key] ?? 'none', after[key] ?? 'none'];
    return from === to ? `  immutable ${key} stays ${to}` : `  immutable ${key} ${from} -> ${to}`;
  });
}

async function layoutChanges(
  context: Context,
  record: DeploymentRecord,
  { name, contract, address }: Pick<PlannedUpgrade, 'name' | 'contract' | 'address'>,
): Promise<string[]> {
  const before = record.implementations[name];
  const live = recordedLayout(context, before);
  const layout = context.build.layout(contract);
  assertLayoutSafe(`${contract} can't take over the storage of ${before.contract}`, live, layout);
  await assertRelated(context, record, name, { contract, address, layout });
  const changes = layoutDifference(live, layout);
  return changes.length === 0 ? ['  storage layout stays'] : changes.map((line) => `  storage ${line}`);
}

/** The owner's call that upgrades a proxy. Throws `CODE_MISMATCH` when the chain does not have an implementation that counts as deployed. */
export async function upgradeAction(
  { provider, build }: Context,
  record: DeploymentRecord,
  {
    name,
    contract,
    address,
    codeHash,
    call,
    deployed,
  }: Pick<PlannedUpgrade, 'name' | 'contract' | 'address' | 'codeHash' | 'call' | 'deployed'>,
): Promise<Action> {
  if (deployed !== null) await assertOnChain(provider, deployed);
  const before = record.implementations[name].address;
  const summary = `~ implementation of ${name} ${before} -> ${address} (code hash ${codeHash})`;
  const contracts = connectContracts(addressesOf(record), provider);
  const method = 'upgradeToAndCall';
  return actionOn(name, contracts[name], method, [address, call], `${summary}${thenCalls(build, contract, call)}`);
}

async function deployImplementation(context: Context, plan: PlannedUpgrade): Promise<ImplementationRecord> {
  const { signer, log } = context;
  const receipt = await mined(signer.sendTransaction({ data: plan.initCode }));
  if (receipt.contractAddress !== plan.address) {
    throw new DeployError(
      'INTERRUPTED',
      `the implementation of ${plan.name} is at ${receipt.contractAddress}; run again`,
    );
  }
  const { contract, address, constructorArgs } = plan;
  const deployed = await describeImplementation(context, contract, address, receipt.blockNumber, constructorArgs);
  if (deployed.codeHash !== plan.codeHash) {
    throw new DeployError('CODE_MISMATCH', `${plan.contract} at ${plan.address} has code ${deployed.codeHash}`);
  }
  log(`deployed ${plan.contract} ${plan.address}`);
  return deployed;
}

/** Simulates the owner's call. Throws `CALL_REVERTS` if it would fail. */
export async function rehearse({ provider }: Context, action: Action): Promise<void> {
  const { owner } = await ownershipOf(provider, action.to);
  try {
    await provider.call({ from: owner, to: action.to, data: action.data });
  } catch (error) {
    throw new DeployError('CALL_REVERTS', `${action.contract}: ${action.summary} would fail: ${reasonOf(error)}`);
  }
}

/** The part of the record that names what has an owner. */
export function addressesOf({ contracts }: DeploymentRecord): Addresses {
  const { custodian, curveBook, entrypoint, orderSettler } = contracts;
  return { custodian, curveBook, entrypoint, orderSettler };
}
