/**
 * Deploys Custodian, CurveBook and Entrypoint as UUPS proxies, and OrderSettler, lists markets, and hands over the roles. The sandbox
 * and a real deployment use this very function.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ContractFactory, getAddress, getCreateAddress, id, toBeHex } from 'ethers';
import type { BaseContract, InterfaceAbi, Provider, Signer } from 'ethers';
import { gridExponents, marketId } from '../core/market.js';
import { parseUnits } from '../core/amounts.js';
import type { Address } from '../core/types.js';
import { CurveBook__factory } from '../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';
import type { CurveBook, Custodian, Entrypoint, OrderSettler } from '../typechain-types/index.js';
import { PERMIT2_ADDRESS } from './canonical.js';
import { deploymentIdOf } from './manifest.js';
import type { DeploymentManifest, ManifestMarket, ManifestToken } from './manifest.js';
import { mined } from './transactions.js';

export interface DeployMarket extends ManifestMarket {
  /** Longest time from a post to its deadline that a poster may ask for. */
  maxTtlSec: number;
}

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
  /** Where Permit2 is; its canonical address by default. */
  permit2?: string;
  withdrawDelaySec: number;
  tokens: readonly ManifestToken[];
  markets: readonly DeployMarket[];
  /** One line per step. */
  log: (line: string) => void;
}

export interface Deployment {
  custodian: Custodian;
  curveBook: CurveBook;
  entrypoint: Entrypoint;
  orderSettler: OrderSettler;
  manifest: DeploymentManifest;
}

/** ERC-1967: keccak256("eip1967.proxy.implementation") - 1 */
const IMPLEMENTATION_SLOT = toBeHex(BigInt(id('eip1967.proxy.implementation')) - 1n, 32);

/** Deploys and configures everything. Throws when the chain disagrees with what was predicted; nothing is retried. */
export async function deployCurvebook(options: DeployOptions): Promise<Deployment> {
  const { deployer, log } = options;
  const provider = providerOf(deployer);
  const listings = options.markets.map((market) => listingOf(market, options.tokens));
  const contracts = await deployContracts(options, provider);
  for (const listing of listings) await listMarket(contracts.curveBook, listing, log);
  await handOver(options, contracts);
  const chainId = Number((await provider.getNetwork()).chainId);
  const custodian = await contracts.custodian.getAddress();
  const manifest: DeploymentManifest = {
    chainId,
    deploymentId: deploymentIdOf(chainId, custodian, contracts.blockHash),
    contracts: {
      custodian,
      curveBook: await contracts.curveBook.getAddress(),
      entrypoint: await contracts.entrypoint.getAddress(),
      orderSettler: await contracts.orderSettler.getAddress(),
      permit2: await contracts.orderSettler.permit2(),
    },
    deploymentBlock: contracts.blockNumber,
    tokens: options.tokens.map(({ symbol, address, decimals }) => ({ symbol, address: getAddress(address), decimals })),
    markets: options.markets.map(({ pair, tickSize, lotSize }) => ({ pair, tickSize, lotSize })),
  };
  return { ...contracts, manifest };
}

interface Contracts {
  custodian: Custodian;
  curveBook: CurveBook;
  entrypoint: Entrypoint;
  orderSettler: OrderSettler;
  /** Of the first proxy, which comes before every event of interest. */
  blockNumber: number;
  blockHash: string;
}

/**
 * The peers' addresses are immutables of the implementations, so the proxies' addresses are predicted from the deployer's nonce:
 * three implementations first, then the proxies, then the settler, and every prediction is checked against the chain.
 */
async function deployContracts(options: DeployOptions, provider: Provider): Promise<Contracts> {
  const { deployer, log } = options;
  const from = await deployer.getAddress();
  const firstNonce = await provider.getTransactionCount(from);
  const predicted = [3, 4, 5, 6].map((offset) => getCreateAddress({ from, nonce: firstNonce + offset }));
  const [custodian, curveBook, entrypoint, orderSettler] = predicted as [string, string, string, string];

  const implementations = {
    custodian: await deployed(new Custodian__factory(deployer).deploy(entrypoint, curveBook, orderSettler)),
    curveBook: await deployed(new CurveBook__factory(deployer).deploy(entrypoint)),
    entrypoint: await deployed(new Entrypoint__factory(deployer).deploy(curveBook, custodian, orderSettler)),
  };
  const initialize = {
    custodian: Custodian__factory.createInterface().encodeFunctionData('initialize', [from, options.withdrawDelaySec]),
    curveBook: CurveBook__factory.createInterface().encodeFunctionData('initialize', [from]),
    entrypoint: Entrypoint__factory.createInterface().encodeFunctionData('initialize', [from]),
  };
  const proxyFactory = proxyFactoryFor(deployer);
  const blocks = [];
  for (const [name, expected] of Object.entries({ custodian, curveBook, entrypoint })) {
    const key = name as keyof typeof implementations;
    const proxy = await proxyFactory.deploy(implementations[key], initialize[key]);
    const receipt = await proxy.deploymentTransaction()?.wait();
    if (receipt?.contractAddress !== expected) {
      throw new Error(
        `${name} is at ${receipt?.contractAddress}, predicted ${expected}: did the deployer send something else?`,
      );
    }
    await assertImplementation(provider, name, expected, implementations[key]);
    log(`${name} ${expected}`);
    blocks.push({ blockNumber: receipt.blockNumber, blockHash: receipt.blockHash });
  }
  await deploySettler(options, provider, { custodian, curveBook, entrypoint, orderSettler });
  const first = blocks[0];
  if (first === undefined) throw new Error('nothing was deployed');
  return {
    custodian: Custodian__factory.connect(custodian, deployer),
    curveBook: CurveBook__factory.connect(curveBook, deployer),
    entrypoint: Entrypoint__factory.connect(entrypoint, deployer),
    orderSettler: OrderSettler__factory.connect(orderSettler, deployer),
    ...first,
  };
}

/** Anybody can deploy Permit2 at its address at any time, so its absence is no error. */
async function deploySettler(
  { deployer, log, permit2 = PERMIT2_ADDRESS }: DeployOptions,
  provider: Provider,
  at: { custodian: string; curveBook: string; entrypoint: string; orderSettler: string },
): Promise<void> {
  if ((await provider.getCode(permit2)) === '0x')
    log(`no Permit2 at ${permit2} yet: signed orders have to wait for it`);
  const owner = await deployer.getAddress();
  const address = await deployed(
    new OrderSettler__factory(deployer).deploy(owner, permit2, at.entrypoint, at.custodian, at.curveBook),
  );
  if (address !== at.orderSettler) throw new Error(`orderSettler is at ${address}, predicted ${at.orderSettler}`);
  log(`orderSettler ${address}`);
}

interface Listing {
  market: DeployMarket;
  base: ManifestToken;
  quote: ManifestToken;
  lotExponent: number;
  tickLotMantissa: bigint;
  tickLotExponent: number;
}

/** Throws when a token is unknown, or when one tick of one lot is not a whole number of quote units. */
function listingOf(market: DeployMarket, tokens: readonly ManifestToken[]): Listing {
  const token = (symbol: string | undefined) => {
    const found = tokens.find((one) => one.symbol === symbol);
    if (found === undefined) throw new Error(`${market.pair}: no token ${symbol}`);
    return found;
  };
  const [baseSymbol, quoteSymbol] = market.pair.split('-');
  const base = token(baseSymbol);
  const quote = token(quoteSymbol);
  const lotUnits = parseUnits(market.lotSize, base.decimals);
  const scale = 36;
  const exact = parseUnits(market.tickSize, scale) * lotUnits * 10n ** BigInt(quote.decimals);
  const divisor = 10n ** BigInt(scale + base.decimals);
  if (exact % divisor !== 0n)
    throw new Error(`${market.pair}: one tick of one lot is not a whole number of quote units`);
  return { market, base, quote, ...gridExponents(lotUnits, exact / divisor) };
}

async function listMarket(curveBook: CurveBook, listing: Listing, log: (line: string) => void): Promise<void> {
  const { market, base, quote } = listing;
  await mined(
    curveBook.listMarket(
      base.address,
      quote.address,
      listing.lotExponent,
      listing.tickLotMantissa,
      listing.tickLotExponent,
      market.maxTtlSec,
    ),
  );
  const market32 = marketId(base.address as Address, quote.address as Address);
  const state = await curveBook.marketState(market32);
  if (getAddress(state.base) !== getAddress(base.address))
    throw new Error(`${market.pair} is not listed as ${market32}`);
  log(`listed ${market.pair}: tick ${market.tickSize}, lot ${market.lotSize}`);
}

/** Names the posters and executors and passes the ownership on. */
async function handOver(options: DeployOptions, contracts: Contracts): Promise<void> {
  const { custodian, curveBook, entrypoint, orderSettler } = contracts;
  for (const poster of options.curvePosters) await mined(curveBook.setPoster(poster, true));
  for (const poster of options.claimPosters) await mined(custodian.setPoster(poster, true));
  for (const executor of options.executors ?? []) await mined(orderSettler.setExecutor(executor, true));
  const deployer = await options.deployer.getAddress();
  if (getAddress(options.owner) === deployer) return;
  for (const contract of [custodian, curveBook, entrypoint, orderSettler]) {
    await mined(contract.transferOwnership(options.owner));
  }
  options.log(`${options.owner} must call acceptOwnership() on the four contracts to own them`);
}

async function deployed(deployment: Promise<BaseContract>): Promise<string> {
  return (await (await deployment).waitForDeployment()).getAddress();
}

async function assertImplementation(provider: Provider, name: string, proxy: string, expected: string): Promise<void> {
  const word = await provider.getStorage(proxy, IMPLEMENTATION_SLOT);
  const actual = getAddress(`0x${word.slice(-40)}`);
  if (actual !== getAddress(expected)) throw new Error(`${name}: the proxy runs ${actual}, not ${expected}`);
}

/** OpenZeppelin's ERC-1967 proxy as published, so that explorers know its source. */
function proxyFactoryFor(deployer: Signer): ContractFactory {
  const path = createRequire(import.meta.url).resolve('@openzeppelin/contracts/build/contracts/ERC1967Proxy.json');
  const { abi, bytecode } = JSON.parse(readFileSync(path, 'utf8')) as { abi: InterfaceAbi; bytecode: string };
  return new ContractFactory(abi, bytecode, deployer);
}

function providerOf(signer: Signer): Provider {
  if (signer.provider === null) throw new Error('the deployer must be connected to a provider');
  return signer.provider;
}
