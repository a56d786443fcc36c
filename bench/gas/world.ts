/** The tokens that all venues trade, and the accounts that hold them. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Interface, MaxUint256, type InterfaceAbi } from 'ethers';
import { placePermit2, placeWeth, WETH_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { SandboxUsdcProxy__factory } from '../../typechain-types/factories/mocks/SandboxUsdcProxy__factory.js';
import { SandboxUsdc__factory } from '../../typechain-types/factories/mocks/SandboxUsdc__factory.js';
import { startGasChain, type Contract, type GasChain } from './chain.js';
import { compileBenchContracts, type BenchContract, type Compiled } from './compile.js';

export interface BenchToken extends Contract {
  symbol: string;
  decimals: number;
}

/** Base and quote; one base token is worth `PRICE` quote tokens everywhere. */
export interface BenchPair {
  id: 'weth' | 'plain';
  base: BenchToken;
  quote: BenchToken;
}

export interface World {
  chain: GasChain;
  compiled: Record<BenchContract, Compiled>;
  /** WETH with the proxied USDC, and two plain tokens of the same decimals. */
  pairs: readonly BenchPair[];
  /** More plain base tokens, for further markets. */
  others: readonly BenchToken[];
  /** Owns and deploys Curvebook, posts and settles. */
  operator: string;
  /** Provides the liquidity of all venues. */
  maker: string;
  taker: string;
  /** `holder` lets `spender` take any amount of every token. */
  approveAll(holder: string, spender: string): Promise<void>;
}

export const PRICE = 3000n;
/** Indices of the chain's accounts. Curvebook has a deployer of its own, so that its addresses stay when the others' contracts change. */
export const OPERATOR = 0;
export const DEPLOYER = 1;
const MAKER = 2;
export const TAKER = 3;

/** 5,000 of each base token, and as much in value of each quote token, per account. */
const BASE_TOKENS = 5_000n;
const require = createRequire(import.meta.url);

/** The artifact of a published package. */
export function publishedArtifact(path: string): Compiled {
  const artifact = JSON.parse(readFileSync(require.resolve(path), 'utf8')) as {
    abi: InterfaceAbi;
    bytecode: string | { object: string };
  };
  const code = typeof artifact.bytecode === 'string' ? artifact.bytecode : artifact.bytecode.object;
  return { abi: artifact.abi, bytecode: code.startsWith('0x') ? code : `0x${code}` };
}

/** Starts a chain and gives the maker and the taker their tokens. */
export async function createWorld(): Promise<World> {
  const chain = await startGasChain();
  const deployer = chain.signers[DEPLOYER]!;
  await placeWeth(chain.provider);
  await placePermit2(chain.provider, deployer);
  const address = (index: number) => chain.signers[index]!.address;

  const wethAbi = new Interface([
    'function deposit() payable',
    'function approve(address spender, uint256 amount) returns (bool)',
    'function balanceOf(address account) view returns (uint256)',
  ]);
  const weth: BenchToken = { address: WETH_ADDRESS, abi: wethAbi, symbol: 'WETH', decimals: 18 };
  const usdc = await createUsdc(chain);
  const plain = async (symbol: string, decimals: number): Promise<BenchToken> => ({
    ...(await chain.deploy(deployer, MintableToken__factory.abi, MintableToken__factory.bytecode, [
      symbol,
      symbol,
      decimals,
    ])),
    symbol,
    decimals,
  });
  const base = await plain('BASE', 18);
  const quote = await plain('QUOTE', 6);
  const others = [await plain('B2', 18), await plain('B3', 18), await plain('B4', 18)];

  const tokens = [weth, usdc, base, quote, ...others];
  const world: World = {
    chain,
    compiled: compileBenchContracts(),
    pairs: [
      { id: 'weth', base: weth, quote: usdc },
      { id: 'plain', base, quote },
    ],
    others,
    operator: address(OPERATOR),
    maker: address(MAKER),
    taker: address(TAKER),
    approveAll: async (holder, spender) => {
      for (const token of tokens) await chain.call(holder, token, 'approve', [spender, MaxUint256]);
    },
  };
  for (const holder of [world.maker, world.taker]) {
    for (const token of tokens) await give(chain, token, holder);
  }
  return world;
}

async function give(chain: GasChain, token: BenchToken, holder: string): Promise<void> {
  const units = BASE_TOKENS * (token.decimals === 18 ? 1n : PRICE) * 10n ** BigInt(token.decimals);
  if (token.symbol === 'WETH') await chain.call(holder, token, 'deposit', [], units);
  else await chain.call(chain.signers[DEPLOYER]!.address, token, 'mint', [holder, units]);
}

async function createUsdc(chain: GasChain): Promise<BenchToken> {
  const deployer = chain.signers[DEPLOYER]!;
  const admin = chain.signers[9]!.address;
  const { abi, bytecode } = SandboxUsdc__factory;
  const implementation = await chain.deploy(deployer, abi, bytecode);
  const { address } = await chain.deploy(deployer, SandboxUsdcProxy__factory.abi, SandboxUsdcProxy__factory.bytecode, [
    implementation.address,
    admin,
  ]);
  const usdc = { address, abi: new Interface(abi), symbol: 'USDC', decimals: 6 };
  await chain.call(deployer.address, usdc, 'initialize', [deployer.address]);
  await chain.call(deployer.address, usdc, 'configureMinter', [deployer.address, 10n ** 18n]);
  return usdc;
}
