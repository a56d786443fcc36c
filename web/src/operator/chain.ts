/** Reads the contracts' state from the chain's endpoint and compares it with the server's answers. */
import type { Address, Hex } from '../../../core/types.js';
import { formatUnits } from '../../../core/amounts.js';
import { callData, firstWord } from '../../../sdk/src/wallet.js';
import type { Deployment, Status } from '../market-context.js';
import { at, exact } from '../numbers.js';
import type { Provider } from '../wallet/provider.js';
import { readerOf } from '../wallet/signer.js';

/** Where EIP-1967 proxies keep the address of their code. */
export const IMPLEMENTATION_SLOT = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc';

export interface ContractRow {
  name: string;
  address: string;
  owner: string | null;
  /** Null where the contract is no proxy. */
  implementation: string | null;
}

export interface SignerRow {
  address: string;
  /** ETH, an exact decimal. */
  eth: string;
  isPoster: boolean;
  isSettler: boolean;
  isExecutor: boolean;
}

const addressOf = (word: bigint): string | null => (word === 0n ? null : `0x${word.toString(16).padStart(40, '0')}`);

type Abi = readonly { type: string; name?: string }[];

const has = (abi: unknown, name: string): boolean =>
  (abi as Abi).some((item) => item.type === 'function' && item.name === name);

/** Owner and code of each contract. Contracts without an owner have none. */
export async function contractRows(provider: Provider, { contracts }: Deployment): Promise<ContractRow[]> {
  const reader = readerOf(provider);
  return Promise.all(
    Object.entries(contracts).map(async ([name, { address, abi }]) => {
      const owner = has(abi, 'owner')
        ? addressOf(firstWord(await reader.call({ to: address as Address, data: callData('owner()', []) })))
        : null;
      const slot = (await provider.request({
        method: 'eth_getStorageAt',
        params: [address, IMPLEMENTATION_SLOT, 'latest'],
      })) as string;
      return { name, address, owner, implementation: addressOf(BigInt(slot)) };
    }),
  );
}

/** What the chain lets each signer of the server do, and what it has for gas. */
export async function signerRows(
  provider: Provider,
  { contracts }: Deployment,
  signers: readonly string[],
): Promise<SignerRow[]> {
  const reader = readerOf(provider);
  const may = async (contract: string, name: string, signer: string): Promise<boolean> => {
    const target = contracts[contract];
    if (target === undefined || !has(target.abi, name)) return false;
    const data: Hex = callData(`${name}(address)`, [signer as Address]);
    return firstWord(await reader.call({ to: target.address as Address, data })) === 1n;
  };
  return Promise.all(
    signers.map(async (address) => {
      const [wei, isPoster, isSettler, isExecutor] = await Promise.all([
        provider.request({ method: 'eth_getBalance', params: [address, 'latest'] }),
        may('curveBook', 'isPoster', address),
        may('custodian', 'isPoster', address),
        may('orderSettler', 'isExecutor', address),
      ]);
      return { address, eth: formatUnits(BigInt(wei as string), 18), isPoster, isSettler, isExecutor };
    }),
  );
}

/** What each address has for gas, in wei. */
export async function balancesOf(provider: Provider, addresses: readonly string[]): Promise<Record<string, bigint>> {
  const wei = await Promise.all(
    addresses.map((address) => provider.request({ method: 'eth_getBalance', params: [address, 'latest'] })),
  );
  return Object.fromEntries(addresses.map((address, i) => [address, BigInt(wei[i] as string)]));
}

export interface SolvencyRow {
  token: string;
  /** What the ledger owes and holds, and what the chain says that the custodian has; exact decimals. */
  held: string;
  unattributed: string;
  onChain: string;
  /** Whether the custodian has at least what the ledger counts on. */
  isWhole: boolean;
}

/** The ledger's holdings beside the custodian's balances at the very block that the ledger has read. */
export async function solvencyRows(
  provider: Provider,
  { contracts, tokens }: Deployment,
  { ledger }: Status,
): Promise<SolvencyRow[]> {
  const custodian = contracts.custodian?.address as Address;
  const block = ledger.block_number === null ? 'latest' : `0x${ledger.block_number.toString(16)}`;
  return Promise.all(
    ledger.holdings.map(async ({ token: symbol, held, unattributed }) => {
      const token = tokens.find((one) => one.symbol === symbol);
      if (token === undefined) throw new Error(`the server holds ${symbol}, which it does not list`);
      const data = callData('balanceOf(address)', [custodian]);
      const params = [{ to: token.address, data }, block];
      const units = firstWord((await provider.request({ method: 'eth_call', params })) as string);
      const isWhole = units >= at(exact(held), token.decimals);
      return { token: symbol, held, unattributed, onChain: formatUnits(units, token.decimals), isWhole };
    }),
  );
}
