/**
 * Deploys Custodian, CurveBook and Entrypoint as UUPS proxies, and OrderSettler. Peers' addresses are immutables, so every address is
 * fixed by the deployer's nonces before the first transaction is sent. Each transaction names its nonce: whatever else the deployer's
 * key sends meanwhile, a contract ends up at the address that its peers know, or the deployment stops. Running it again with the same
 * first nonce goes on where it stopped.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  Interface,
  ZeroAddress,
  concat,
  dataSlice,
  getAddress,
  getCreateAddress,
  id,
  keccak256,
  toBeHex,
} from 'ethers';
import type { InterfaceAbi, Provider, Signer } from 'ethers';
import { CurveBook__factory } from '../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';
import type { CurveBook, Custodian, Entrypoint, OrderSettler } from '../typechain-types/index.js';
import { DeployError } from './errors.js';
import { mined } from './transactions.js';

/** The contracts behind proxies, in the order of deployment, and the names of their sources. */
export const PROXIES = { custodian: 'Custodian', curveBook: 'CurveBook', entrypoint: 'Entrypoint' } as const;
export type ProxyName = keyof typeof PROXIES;
export const PROXY_NAMES = Object.keys(PROXIES) as ProxyName[];

/** Everything that has an owner. */
export const CONTRACT_NAMES = [...PROXY_NAMES, 'orderSettler'] as const;
export type ContractName = (typeof CONTRACT_NAMES)[number];
export type Addresses = Record<ContractName, string>;

/** ERC-1967: keccak256("eip1967.proxy.implementation") - 1 */
const IMPLEMENTATION_SLOT = toBeHex(BigInt(id('eip1967.proxy.implementation')) - 1n, 32);

export interface PlanOptions {
  /** Pays for everything, and owns the contracts at first. */
  deployer: string;
  /** Nonce of the first transaction. */
  firstNonce: number;
  permit2: string;
  withdrawDelaySec: number;
}

export interface Step {
  /** The contract's name in the manifest; with a suffix for an implementation. */
  name: string;
  nonce: number;
  /** Where the contract will be. */
  address: string;
  initCode: string;
}

export interface DeploymentPlan {
  deployer: string;
  addresses: Addresses;
  implementations: Record<ProxyName, string>;
  steps: Step[];
}

/** Constructor arguments of each implementation. */
export function constructorArgs(name: ProxyName, at: Addresses): unknown[] {
  const args = {
    custodian: [at.entrypoint, at.curveBook, at.orderSettler],
    curveBook: [at.entrypoint],
    entrypoint: [at.curveBook, at.custodian, at.orderSettler],
  };
  return args[name];
}

/** Constructor arguments of the settler. */
export function settlerArgs(owner: string, permit2: string, at: Addresses): string[] {
  return [owner, permit2, at.entrypoint, at.custodian, at.curveBook];
}

/** Call data of each proxy's initialization. */
export function initializeData(name: ProxyName, owner: string, withdrawDelaySec: number): string {
  const data = {
    custodian: () => Custodian__factory.createInterface().encodeFunctionData('initialize', [owner, withdrawDelaySec]),
    curveBook: () => CurveBook__factory.createInterface().encodeFunctionData('initialize', [owner]),
    entrypoint: () => Entrypoint__factory.createInterface().encodeFunctionData('initialize', [owner]),
  };
  return data[name]();
}

/** Computes every address and every transaction's content; sends nothing. */
export function planDeployment({ deployer, firstNonce, permit2, withdrawDelaySec }: PlanOptions): DeploymentPlan {
  const from = getAddress(deployer);
  const at = (offset: number): string => getCreateAddress({ from, nonce: firstNonce + offset });
  const names = PROXY_NAMES;
  const implementations = Object.fromEntries(names.map((name, i) => [name, at(i)])) as Record<ProxyName, string>;
  const proxies = Object.fromEntries(names.map((name, i) => [name, at(names.length + i)])) as Record<ProxyName, string>;
  const addresses: Addresses = { ...proxies, orderSettler: at(2 * names.length) };
  const steps = [
    ...names.map((name) => ({ name: `${name} implementation`, initCode: implementationInitCode(name, addresses) })),
    ...names.map((name) => ({
      name,
      initCode: proxyInitCode(implementations[name], initializeData(name, from, withdrawDelaySec)),
    })),
    { name: 'orderSettler', initCode: settlerInitCode(from, permit2, addresses) },
  ];
  return {
    deployer: from,
    addresses,
    implementations,
    steps: steps.map((step, i) => ({ ...step, nonce: firstNonce + i, address: at(i) })),
  };
}

function implementationInitCode(name: ProxyName, at: Addresses): string {
  const factories = { custodian: Custodian__factory, curveBook: CurveBook__factory, entrypoint: Entrypoint__factory };
  const { bytecode, abi } = factories[name];
  return concat([bytecode, new Interface(abi).encodeDeploy(constructorArgs(name, at))]);
}

/** The settler's init code, constructor arguments included. */
export function settlerInitCode(owner: string, permit2: string, at: Addresses): string {
  const args = OrderSettler__factory.createInterface().encodeDeploy(settlerArgs(owner, permit2, at));
  return concat([OrderSettler__factory.bytecode, args]);
}

interface ProxyArtifact {
  abi: InterfaceAbi;
  bytecode: string;
  deployedBytecode: string;
}

let proxyArtifact: ProxyArtifact | undefined;

/** OpenZeppelin's ERC-1967 proxy as published, so that explorers know its source. */
function erc1967Proxy(): ProxyArtifact {
  const path = createRequire(import.meta.url).resolve('@openzeppelin/contracts/build/contracts/ERC1967Proxy.json');
  proxyArtifact ??= JSON.parse(readFileSync(path, 'utf8')) as ProxyArtifact;
  return proxyArtifact;
}

function proxyInitCode(implementation: string, data: string): string {
  const { abi, bytecode } = erc1967Proxy();
  return concat([bytecode, new Interface(abi).encodeDeploy([implementation, data])]);
}

/** keccak256 of the code that each of our proxies has. */
export function proxyCodeHash(): string {
  return keccak256(erc1967Proxy().deployedBytecode);
}

/**
 * Sends what is missing of `plan`, one transaction after the other. Throws `INTERRUPTED` when the deployer's key was used for something
 * else in between, so that the rest of the plan can't come true.
 */
export async function executePlan(plan: DeploymentPlan, deployer: Signer, log: (line: string) => void): Promise<void> {
  const provider = providerOf(deployer);
  for (const step of plan.steps) {
    if ((await provider.getCode(step.address)) !== '0x') {
      log(`${step.name} ${step.address} is there already`);
      continue;
    }
    const nonce = await provider.getTransactionCount(plan.deployer);
    if (nonce !== step.nonce) {
      throw new DeployError(
        'INTERRUPTED',
        `${step.name} needs nonce ${step.nonce} of ${plan.deployer}, which is at ${nonce}: its key was used for something else. ` +
          'Start over; what was deployed so far holds nothing',
      );
    }
    const receipt = await mined(deployer.sendTransaction({ data: step.initCode, nonce: step.nonce }));
    if (receipt.contractAddress !== step.address) {
      throw new DeployError('INTERRUPTED', `${step.name} is at ${receipt.contractAddress}, predicted ${step.address}`);
    }
    log(`${step.name} ${step.address}`);
  }
  for (const name of PROXY_NAMES) {
    const actual = await implementationOf(provider, plan.addresses[name]);
    if (actual !== plan.implementations[name]) {
      throw new DeployError('CODE_MISMATCH', `${name}: the proxy runs ${actual}, not ${plan.implementations[name]}`);
    }
  }
}

/** Address of the code that a proxy runs now. */
export async function implementationOf(provider: Provider, proxy: string): Promise<string> {
  return getAddress(dataSlice(await provider.getStorage(proxy, IMPLEMENTATION_SLOT), 12));
}

export interface Contracts {
  custodian: Custodian;
  curveBook: CurveBook;
  entrypoint: Entrypoint;
  orderSettler: OrderSettler;
}

/** The contracts at their addresses, called by `runner`. */
export function connectContracts(at: Addresses, runner: Signer | Provider): Contracts {
  return {
    custodian: Custodian__factory.connect(at.custodian, runner),
    curveBook: CurveBook__factory.connect(at.curveBook, runner),
    entrypoint: Entrypoint__factory.connect(at.entrypoint, runner),
    orderSettler: OrderSettler__factory.connect(at.orderSettler, runner),
  };
}

/** Who owns the contract at `address`, and who may accept its ownership: null for nobody. */
export async function ownershipOf(
  provider: Provider,
  address: string,
): Promise<{ owner: string; pendingOwner: string | null }> {
  const contract = Custodian__factory.connect(address, provider);
  const [owner, pending] = [await contract.owner(), await contract.pendingOwner()];
  return { owner: getAddress(owner), pendingOwner: pending === ZeroAddress ? null : getAddress(pending) };
}

/** Throws when the signer can't reach a chain. */
export function providerOf(signer: Signer): Provider {
  if (signer.provider === null) throw new Error('the signer must be connected to a provider');
  return signer.provider;
}
