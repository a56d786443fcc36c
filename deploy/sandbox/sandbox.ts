/** Everything the sandbox's chain has when it is up: tokens, Permit2, the contracts, funded accounts. */
import { MaxUint256, Wallet, parseUnits, type JsonRpcProvider } from 'ethers';
import type { Custodian } from '../../typechain-types/index.js';
import { sandboxAccounts, sandboxIssuerKey, type SandboxRole } from './accounts.js';
import { PERMIT2_ADDRESS, placeGasPriceOracle, placePermit2, placeWeth } from './canonical.js';
import { deployCurvebook, type DeployMarket } from '../deploy.js';
import type { SandboxManifest } from '../manifest.js';
import { deployManagedPools } from './managed-pools.js';
import { deployPairs } from './pairs.js';
import { deployPools, type SandboxRouter } from './pools.js';
import { sandboxTokenList } from './token-list.js';
import { createTokens, type SandboxSymbol, type SandboxToken } from './tokens.js';
import { connect, mined } from '../transactions.js';

/** In the order of listing. They share tokens on purpose, so that one balance of a maker backs orders on several markets. */
export const SANDBOX_MARKETS: readonly DeployMarket[] = [
  { pair: 'WETH-USDC', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 },
  { pair: 'WETH-DAI', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 },
  { pair: 'cbBTC-USDC', tickSize: '1', lotSize: '0.00001', maxTtlSec: 60 },
  { pair: 'cbBTC-WETH', tickSize: '0.0001', lotSize: '0.0001', maxTtlSec: 60 },
];

/** What each maker has deposited, and what each taker and the third maker have in their wallets. */
const GRANT: Record<SandboxSymbol, string> = { WETH: '100', USDC: '300000', DAI: '300000', cbBTC: '5' };

const DEPOSITING_MAKERS: readonly SandboxRole[] = ['maker1', 'maker2'];
const WALLET_HOLDERS: readonly SandboxRole[] = ['maker3', 'taker1', 'taker2', 'taker3'];
const DIRECT_TAKERS: readonly SandboxRole[] = ['taker1', 'taker2'];
/** Trades by signature only: its tokens are allowed to Permit2, and it can't pay for a transaction. */
const GASLESS_TAKER: SandboxRole = 'taker3';

export interface SandboxOptions {
  rpcUrl: string;
  serverUrl: string;
  /** How many of the markets above to list, 1..4. */
  marketCount: number;
  withdrawDelaySec?: number;
  /** Adds Uniswap v3 with a pool per market, which the settler may call. */
  pools?: boolean;
  /** Adds Uniswap v2 with a pair per market, which the settler may call. */
  pairs?: boolean;
  /** Adds Uniswap v4 with a pool per market, which the settler may call by our own router. */
  managedPools?: boolean;
  /** Of Uniswap v3. Default: SwapRouter02, as the real chain has it. */
  router?: SandboxRouter;
  log: (line: string) => void;
}

/** Sets up a fresh local chain and returns its manifest, which the caller writes when the rest is up, too. */
export async function deploySandbox(options: SandboxOptions): Promise<SandboxManifest> {
  const provider = connect(options.rpcUrl);
  try {
    // Each transaction gets a block of its own at once; chain time stays that of the wall clock.
    await provider.send('evm_setAutomine', [true]);
    const manifest = await deployAll(provider, options);
    await provider.send('evm_setAutomine', [false]);
    return manifest;
  } finally {
    provider.destroy();
  }
}

async function deployAll(provider: JsonRpcProvider, options: SandboxOptions): Promise<SandboxManifest> {
  const markets = SANDBOX_MARKETS.slice(0, options.marketCount);
  if (markets.length !== options.marketCount || markets.length === 0) {
    throw new RangeError(`the sandbox has 1..${SANDBOX_MARKETS.length} markets, not ${options.marketCount}`);
  }
  const accounts = sandboxAccounts();
  const wallets = walletsOf(accounts, provider);
  await placePermit2(provider, wallets.executor);
  await placeWeth(provider);
  await placeGasPriceOracle(provider, new Wallet(sandboxIssuerKey(), provider));
  const symbols = [...new Set(markets.flatMap(({ pair }) => pair.split('-') as SandboxSymbol[]))];
  const tokens = await createTokens(provider, symbols);
  const pools =
    options.pools === true ? await deployPools(provider, tokens, markets, options.router ?? 'SwapRouter02') : null;
  const pairs = options.pairs === true ? await deployPairs(provider, tokens, markets) : null;
  const managed = options.managedPools === true ? await deployManagedPools(provider, tokens, markets) : null;
  const { manifest, custodian, entrypoint } = await deployCurvebook({
    deployer: wallets.owner,
    owner: wallets.owner.address,
    curvePosters: [wallets.poster.address],
    claimPosters: [wallets.settler.address],
    executors: [wallets.executor.address],
    targets: [pools?.uniswapV3Router, pairs?.uniswapV2Router, managed?.uniswapV4Router].filter(
      (router) => router !== undefined,
    ),
    withdrawDelaySec: options.withdrawDelaySec ?? 600,
    tokens,
    markets,
    log: options.log,
  });
  await fund(wallets, tokens, custodian, await entrypoint.getAddress());
  await provider.send('hardhat_setBalance', [wallets[GASLESS_TAKER].address, '0x0']);
  options.log(`funded the makers and takers with ${symbols.map((symbol) => `${GRANT[symbol]} ${symbol}`).join(', ')}`);
  const tokenContracts = tokens.map(({ symbol, address }): [string, string] => [symbol.toLowerCase(), address]);
  const { chainId, deploymentId, contracts, deploymentBlock } = manifest;
  return {
    chainId,
    deploymentId,
    rpcUrl: options.rpcUrl,
    serverUrl: options.serverUrl,
    contracts: { ...contracts, ...Object.fromEntries(tokenContracts), ...pools, ...pairs, ...managed },
    deploymentBlock,
    tokens: manifest.tokens,
    tokenList: sandboxTokenList(chainId, manifest.tokens),
    markets: manifest.markets,
    accounts,
  };
}

async function fund(
  wallets: Wallets,
  tokens: readonly SandboxToken[],
  custodian: Custodian,
  entrypoint: string,
): Promise<void> {
  const custodianAddress = await custodian.getAddress();
  for (const token of tokens) {
    const grantUnits = parseUnits(GRANT[token.symbol], token.decimals);
    for (const role of [...DEPOSITING_MAKERS, ...WALLET_HOLDERS]) await token.give(wallets[role], grantUnits);
    for (const role of DEPOSITING_MAKERS) {
      const maker = wallets[role];
      await token.approve(maker, custodianAddress, grantUnits);
      await mined(custodian.connect(maker).deposit(token.address, grantUnits));
    }
    for (const role of DIRECT_TAKERS) await token.approve(wallets[role], entrypoint, MaxUint256);
    await token.approve(wallets[GASLESS_TAKER], PERMIT2_ADDRESS, MaxUint256);
  }
}

type Wallets = Record<SandboxRole, Wallet>;

function walletsOf(accounts: ReturnType<typeof sandboxAccounts>, provider: JsonRpcProvider): Wallets {
  const entries = accounts.map(({ role, privateKey }) => [role, new Wallet(privateKey, provider)]);
  return Object.fromEntries(entries) as Wallets;
}
