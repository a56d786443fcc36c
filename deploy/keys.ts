/** Keys that send transactions: from the environment, or from Hardhat's encrypted keystore. Never from a file of the project. */
import { VoidSigner, Wallet } from 'ethers';
import type { Provider, Signer } from 'ethers';
import { EXPLORER_KEY_VARIABLE, KEY_VARIABLE } from './environment.js';
import { DeployError } from './errors.js';

/**
 * The signer of the key in the environment, or of the one that `npx hardhat keystore set DEPLOY_PRIVATE_KEY` stored, for which the
 * keystore asks its password. Throws `NO_KEY` when there is neither, or when it is no key.
 */
export async function keySigner(provider: Provider, fromEnvironment: string | null): Promise<Signer> {
  return walletOf(fromEnvironment ?? (await fromKeystore(KEY_VARIABLE))).connect(provider);
}

/** The account that a key signs for. Throws `NO_KEY` when it is no key. */
export function accountOfKey(key: string): string {
  return walletOf(key).address;
}

function walletOf(key: string): Wallet {
  try {
    if (/^(0x)?[0-9a-fA-F]{64}$/.test(key)) return new Wallet(key.startsWith('0x') ? key : `0x${key}`);
  } catch {
    // The key is zero or not below the order of the curve. The library's own error is not passed on, since it contains the key.
  }
  throw new DeployError('NO_KEY', `${KEY_VARIABLE} is no private key: 32 bytes in hex`);
}

/** A signer for an account whose key is not available: it can read, but not send. */
export function onlooker(provider: Provider, address: string): Signer {
  return new VoidSigner(address, provider);
}

/** The explorer's key for source verification, from the same places. Throws `NO_KEY`. */
export function explorerKey(): Promise<string> {
  return fromKeystore(EXPLORER_KEY_VARIABLE);
}

/** A secret from the environment, else from Hardhat's keystore: Hardhat looks in this order. Loading Hardhat takes a second. */
async function fromKeystore(name: string): Promise<string> {
  const { default: hardhatKeystore } = await import('@nomicfoundation/hardhat-keystore');
  const { configVariable } = await import('hardhat/config');
  const { createHardhatRuntimeEnvironment } = await import('hardhat/hre');
  const hre = await createHardhatRuntimeEnvironment({
    plugins: [hardhatKeystore],
    networks: { target: { type: 'http', url: 'http://127.0.0.1', accounts: [configVariable(name)] } },
  });
  const network = hre.config.networks['target'];
  const [variable] = network?.type === 'http' && Array.isArray(network.accounts) ? network.accounts : [];
  try {
    const value = await variable?.get();
    if (value === undefined || value === '') throw new Error('it is empty');
    return value;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DeployError(
      'NO_KEY',
      `${name} is neither in the environment nor in Hardhat's keystore (npx hardhat keystore set ${name}): ${reason}`,
    );
  }
}
