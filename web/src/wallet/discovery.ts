/** The wallets of the browser. */
import type { Provider } from './provider.js';

interface WalletInfo {
  uuid: string;
  name: string;
  /** A data URL. */
  icon: string;
  rdns: string;
}

export interface FoundWallet {
  info: WalletInfo;
  provider: Provider;
}

/** The old way: a wallet that announces nothing and calls itself `window.ethereum`. */
const INJECTED: WalletInfo = { uuid: 'injected', name: 'Browser wallet', icon: '', rdns: 'injected' };

/** Calls `onFound` with all wallets of the page each time that one more announces itself (EIP-6963), early or late. Returns what ends it. */
export function discoverWallets(onFound: (wallets: readonly FoundWallet[]) => void): () => void {
  const byId = new Map<string, FoundWallet>();
  const injected = (window as { ethereum?: Provider }).ethereum;
  const tell = (): void => {
    const announced = [...byId.values()];
    const isKnown = announced.some(({ provider }) => provider === injected);
    onFound(injected === undefined || isKnown ? announced : [...announced, { info: INJECTED, provider: injected }]);
  };
  const onAnnounce = (event: Event): void => {
    const { info, provider } = (event as CustomEvent<Partial<FoundWallet> | null>).detail ?? {};
    if (typeof info?.uuid !== 'string' || typeof info.name !== 'string' || typeof provider?.request !== 'function')
      return;
    // An image from another site would reveal the visitor to that site.
    const icon = typeof info.icon === 'string' && info.icon.startsWith('data:image/') ? info.icon : '';
    byId.set(info.uuid, { info: { ...info, name: info.name.slice(0, 40), icon }, provider });
    tell();
  };
  window.addEventListener('eip6963:announceProvider', onAnnounce);
  window.dispatchEvent(new Event('eip6963:requestProvider'));
  tell();
  return () => window.removeEventListener('eip6963:announceProvider', onAnnounce);
}
