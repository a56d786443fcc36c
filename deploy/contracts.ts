/**
 * Deploys Custodian, CurveBook and Entrypoint as UUPS proxies, OrderSettler, and the periphery. Peers' addresses are immutables, so every
 * address is fixed by the deployer's nonces before the first transaction is sent. Each transaction names its nonce: whatever else the deployer's
 * key sends meanwhile, a contract ends up at the address that its peers know, or the deployment stops. Running it again with the same
 * first nonce goes on where it stopped.
 */
import { Interface, ZeroAddress, concat, dataSlice, getAddress, getCreateAddress, id, toBeHex } from 'ethers';
import type { Provider, Signer } from 'ethers';
import { CurveBook__factory } from '../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';
import { PlatformProxy__factory } from '../typechain-types/factories/PlatformProxy__factory.js';
import { CurveLens__factory } from '../typechain-types/factories/periphery/CurveLens__factory.js';
import { PropAmmAdapter__factory } from '../typechain-types/factories/periphery/PropAmmAdapter__factory.js';
import type { CurveBook, Custodian, Entrypoint, OrderSettler } from '../typechain-types/index.js';
import { DeployError } from './errors.js';
import { mined } from './transactions.js';

/** The contracts behind proxies, in the order of deployment, and the names of their sources. */
export const PROXIES = { custodian: 'Custodian', curveBook: 'CurveBook', entrypoint: 'Entrypoint' } as const;
export type ProxyName = keyof typeof PROXIES;
export const PROXY_NAMES = Object.keys(PROXIES) as ProxyName[];

/** The contracts that have an owner. */
export const CONTRACT_NAMES = [...PROXY_NAMES, 'orderSettler'] as const;
export type ContractName = (typeof CONTRACT_NAMES)[number];
export type Addresses = Record<ContractName, string>;

/** Names of the sources of contracts that are never replaced. */
export const FIXED = {
  custodian: 'PlatformProxy',
  curveBook: 'PlatformProxy',
  entrypoint: 'PlatformProxy',
  orderSettler: 'OrderSettler',
  lens: 'CurveLens',
  adapter: 'PropAmmAdapter',
} as const;
type FixedName = keyof typeof FIXED;
export const FIXED_NAMES = Object.keys(FIXED) as FixedName[];

/** Contracts that have neither an owner nor state, and that no other contract depends on. */
export const PERIPHERY_NAMES = ['lens', 'adapter'] as const;
type PeripheryName = (typeof PERIPHERY_NAMES)[number];
type PeripheryAddresses = Record<PeripheryName, string>;

/** ERC-1967: keccak256("eip1967.proxy.implementation") - 1 */
const IMPLEMENTATION_SLOT = toBeHex(BigInt(id('eip1967.proxy.implementation')) - 1n, 32);

interface PlanOptions {
  /** Pays for everything, and owns the contracts at first. */
  deployer: string;
  /** Nonce of the first transaction. */
  firstNonce: number;
  permit2: string;
  withdrawDelaySec: number;
}

interface Step {
  /** The contract's name in the manifest; with a suffix for an implementation. */
  name: string;
  /** Name of its source. */
  source: string;
  /** Constructor arguments, ABI-encoded. */
  args: string;
  nonce: number;
  /** Where the contract will be. */
  address: string;
  initCode: string;
}

export interface DeploymentPlan {
  deployer: string;
  addresses: Addresses;
  periphery: PeripheryAddresses;
  implementations: Record<ProxyName, string>;
  steps: Step[];
}

/**
 * Constructor arguments of each implementation. The custodian refuses to pay to contracts of the platform, so its arguments name the other two
 * implementations: after one of those is replaced, the custodian's must be replaced, too.
 */
export function constructorArgs(
  name: ProxyName,
  at: Addresses & PeripheryAddresses,
  implementations: Record<ProxyName, string>,
): unknown[] {
  const { custodian, curveBook, entrypoint, orderSettler, lens, adapter } = at;
  const codes = [implementations.curveBook, implementations.entrypoint];
  const args = {
    custodian: [[custodian, curveBook, entrypoint, orderSettler, lens, adapter, ...codes]],
    curveBook: [entrypoint, custodian, orderSettler],
    entrypoint: [curveBook, custodian, orderSettler],
  };
  return args[name];
}

/** Constructor arguments of the settler. */
function settlerArgs(owner: string, permit2: string, at: Addresses): string[] {
  return [owner, permit2, at.entrypoint, at.custodian, at.curveBook];
}

/** Constructor arguments of the periphery. */
function peripheryArgs(name: PeripheryName, at: Addresses, periphery: PeripheryAddresses): string[] {
  return { lens: [at.curveBook, at.custodian], adapter: [at.entrypoint, periphery.lens, at.custodian] }[name];
}

/** Call data of each proxy's initialization. */
function initializeData(name: ProxyName, owner: string, withdrawDelaySec: number): string {
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
  const settlerOffset = 2 * names.length;
  const addresses: Addresses = { ...proxies, orderSettler: at(settlerOffset) };
  const periphery: PeripheryAddresses = { lens: at(settlerOffset + 1), adapter: at(settlerOffset + 2) };
  const steps: { name: string; source: Source; args: readonly unknown[] }[] = [
    ...names.map((name) => ({
      name: `${name} implementation`,
      source: PROXIES[name],
      args: constructorArgs(name, { ...addresses, ...periphery }, implementations),
    })),
    ...names.map((name) => ({
      name,
      source: FIXED[name],
      args: [implementations[name], initializeData(name, from, withdrawDelaySec)],
    })),
    { name: 'orderSettler', source: FIXED.orderSettler, args: settlerArgs(from, permit2, addresses) },
    ...PERIPHERY_NAMES.map((name) => ({
      name,
      source: FIXED[name],
      args: peripheryArgs(name, addresses, periphery),
    })),
  ];
  return {
    deployer: from,
    addresses,
    periphery,
    implementations,
    steps: steps.map(({ name, source, args }, i) => {
      const { bytecode, abi } = FACTORIES[source];
      const encoded = new Interface(abi).encodeDeploy([...args]);
      return {
        name,
        source,
        nonce: firstNonce + i,
        address: at(i),
        args: encoded,
        initCode: concat([bytecode, encoded]),
      };
    }),
  };
}

const FACTORIES = {
  Custodian: Custodian__factory,
  CurveBook: CurveBook__factory,
  Entrypoint: Entrypoint__factory,
  PlatformProxy: PlatformProxy__factory,
  OrderSettler: OrderSettler__factory,
  CurveLens: CurveLens__factory,
  PropAmmAdapter: PropAmmAdapter__factory,
};
type Source = keyof typeof FACTORIES;

/**
 * Sends the transactions of `plan` that are missing, one after the other. Throws `INTERRUPTED` when the deployer's key sent another transaction
 * in between, since the contracts' addresses would differ from the plan's.
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
