/** The sandbox's accounts: well-known development keys, worthless on any other chain. */
import { HDNodeWallet, Mnemonic } from 'ethers';
import type { ManifestAccount } from '../manifest.js';

const SANDBOX_ROLES = [
  'owner',
  'poster',
  'settler',
  'executor',
  'maker1',
  'maker2',
  'maker3',
  'taker1',
  'taker2',
  'taker3',
] as const;
export type SandboxRole = (typeof SANDBOX_ROLES)[number];

/** The account that mints the sandbox's tokens. It has no role on the platform. */
const ISSUER_INDEX = 19;

/** The accounts of all roles, in the order above. */
export function sandboxAccounts(): (ManifestAccount & { role: SandboxRole })[] {
  return SANDBOX_ROLES.map((role, index) => ({ role, ...keyAt(index) }));
}

/** Private key of the account that issues the tokens. */
export function sandboxIssuerKey(): string {
  return keyAt(ISSUER_INDEX).privateKey;
}

/** Kept, since deriving it is slow. */
let parent: HDNodeWallet | undefined;
const keys = new Map<number, { address: string; privateKey: string }>();

function keyAt(index: number): { address: string; privateKey: string } {
  let key = keys.get(index);
  if (key === undefined) {
    parent ??= HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(SANDBOX_MNEMONIC), "m/44'/60'/0'/0");
    const { address, privateKey } = parent.deriveChild(index);
    keys.set(index, (key = { address, privateKey }));
  }
  return { ...key };
}

/** The sandbox's chain has the id of the public chain that the platform is made for. */
export const SANDBOX_CHAIN_ID = 8453;
/** Well known, worthless anywhere else: the accounts of every Hardhat network. */
export const SANDBOX_MNEMONIC = 'test test test test test test test test test test test junk';
