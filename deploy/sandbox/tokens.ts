/** The sandbox's tokens, and how an account gets some. */
import { Contract, Wallet, type JsonRpcProvider, type TransactionResponse } from 'ethers';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { SandboxUsdcProxy__factory } from '../../typechain-types/factories/mocks/SandboxUsdcProxy__factory.js';
import { SandboxUsdc__factory } from '../../typechain-types/factories/mocks/SandboxUsdc__factory.js';
import { sandboxIssuerKey } from './accounts.js';
import { WETH_ADDRESS } from './canonical.js';
import type { ManifestToken } from '../manifest.js';
import { mined } from '../transactions.js';

export type SandboxSymbol = 'WETH' | 'USDC' | 'DAI' | 'cbBTC';

export interface SandboxToken extends ManifestToken {
  symbol: SandboxSymbol;
  /** Puts `units` into the wallet of `account`. One call at a time per token. */
  give(account: Wallet, units: bigint): Promise<void>;
  /** `account` lets `spender` take up to `units`. */
  approve(account: Wallet, spender: string, units: bigint): Promise<void>;
}

const ERC20_ABI = ['function approve(address spender, uint256 amount) returns (bool)'];
const WETH_ABI = ['function deposit() payable'];
/** More than all accounts together will ever get. */
const MINTER_ALLOWANCE_UNITS = 10n ** 18n;

/** Creates each of `symbols` on the chain; WETH must be in place already. */
export async function createTokens(
  provider: JsonRpcProvider,
  symbols: readonly SandboxSymbol[],
): Promise<SandboxToken[]> {
  const issuer = new Wallet(sandboxIssuerKey(), provider);
  const create: Record<SandboxSymbol, () => Promise<SandboxToken>> = {
    WETH: async () => weth(),
    USDC: () => usdc(issuer),
    DAI: () => plain(issuer, 'Dai Stablecoin', 'DAI', 18),
    cbBTC: () => plain(issuer, 'Coinbase Wrapped BTC', 'cbBTC', 8),
  };
  const tokens = [];
  for (const symbol of symbols) tokens.push(await create[symbol]());
  return tokens;
}

async function approve(token: string, account: Wallet, spender: string, units: bigint): Promise<void> {
  const contract = new Contract(token, ERC20_ABI, account);
  await mined(contract.getFunction('approve').send(spender, units));
}

function weth(): SandboxToken {
  return {
    symbol: 'WETH',
    address: WETH_ADDRESS,
    decimals: 18,
    give: async (account, units) => {
      const wrap = new Contract(WETH_ADDRESS, WETH_ABI, account).getFunction('deposit');
      await mined(wrap.send({ value: units }));
    },
    approve: (account, spender, units) => approve(WETH_ADDRESS, account, spender, units),
  };
}

/** Like the real one: an implementation behind a proxy whose admin can't use the token, and a minter with a limit. */
async function usdc(issuer: Wallet): Promise<SandboxToken> {
  const admin = Wallet.createRandom().address;
  const implementation = await address(new SandboxUsdc__factory(issuer).deploy());
  const proxy = await address(new SandboxUsdcProxy__factory(issuer).deploy(implementation, admin));
  const token = SandboxUsdc__factory.connect(proxy, issuer);
  await mined(token.initialize(issuer.address));
  await mined(token.configureMinter(issuer.address, MINTER_ALLOWANCE_UNITS));
  return {
    symbol: 'USDC',
    address: proxy,
    decimals: 6,
    give: async (account, units) => void (await mined(token.mint(account.address, units))),
    approve: (account, spender, units) => approve(proxy, account, spender, units),
  };
}

async function plain(issuer: Wallet, name: string, symbol: SandboxSymbol, decimals: number): Promise<SandboxToken> {
  const token = await (await new MintableToken__factory(issuer).deploy(name, symbol, decimals)).waitForDeployment();
  const at = await token.getAddress();
  return {
    symbol,
    address: at,
    decimals,
    give: async (account, units) => void (await mined(token.mint(account.address, units))),
    approve: (account, spender, units) => approve(at, account, spender, units),
  };
}

async function address(
  deployment: Promise<{ getAddress(): Promise<string>; deploymentTransaction(): TransactionResponse | null }>,
): Promise<string> {
  const contract = await deployment;
  await contract.deploymentTransaction()?.wait();
  return contract.getAddress();
}
