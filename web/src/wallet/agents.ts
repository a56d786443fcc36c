/** Keys that this page makes to sign orders with: browser wallets refuse the domain that orders are signed in. They can't withdraw. */
import { bytesToHex } from '../../../sdk/src/hash.js';
import type { Signer } from '../../../sdk/src/maker.js';

const nameOf = (deploymentId: string, maker: string): string => `curvebook.agent.${deploymentId}.${maker}`;

/** The key that this tab made for a maker, gone with the tab. */
export function storedAgent(deploymentId: string, maker: string): string | null {
  try {
    return sessionStorage.getItem(nameOf(deploymentId, maker));
  } catch {
    return null;
  }
}

/** Null takes it away. */
export function storeAgent(deploymentId: string, maker: string, key: string | null): void {
  try {
    if (key === null) sessionStorage.removeItem(nameOf(deploymentId, maker));
    else sessionStorage.setItem(nameOf(deploymentId, maker), key);
  } catch {
    // Without storage the agent lasts until the page is left.
  }
}

export function newAgentKey(): string {
  return bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
}

export async function agentAddress(key: string): Promise<string> {
  const { keyProvider } = await import('./key-provider.js');
  return keyProvider(key, null).address;
}

export function agentSigner(key: string): Signer {
  return {
    // Only signatures are asked of it, which name nobody.
    address: `0x${'0'.repeat(40)}`,
    async signTypedData(data) {
      const [{ keyProvider }, { typedDataJson }] = await Promise.all([
        import('./key-provider.js'),
        import('./signer.js'),
      ]);
      const signed = await keyProvider(key, null).request({
        method: 'eth_signTypedData_v4',
        params: ['', typedDataJson(data)],
      });
      return signed as string;
    },
  };
}
