/**
 * A wallet in the page that announces itself (EIP-6963), or only calls itself `window.ethereum` as older ones do, and behaves as configured: it
 * accepts, refuses, changes its chain or its account, or says of what it sent that it is not mined (`hold`), also after a reload.
 */
interface StandInOptions {
  /** Accounts that the node itself signs for. */
  addresses: string[];
  rpcUrl: string;
  isInjected?: boolean;
}

/** Runs in the browser, where only this function's own body exists: it must use nothing else of this module. */
export function walletStandIn({ addresses, rpcUrl, isInjected = false }: StandInOptions): void {
  const listeners: Record<string, ((value: unknown) => void)[]> = {};
  const tell = (event: string, value: unknown): void => (listeners[event] ?? []).forEach((listener) => listener(value));
  const scope = globalThis as unknown as {
    standIn: object;
    ethereum?: object;
    sessionStorage: { getItem(name: string): string | null; setItem(name: string, value: string): void };
    dispatchEvent(event: Event): void;
    addEventListener(name: string, listener: () => void): void;
  };
  let mode = scope.sessionStorage.getItem('standIn') ?? 'obey';
  let at: number | null = 0;
  let chainId: string | null = null;

  async function node(method: string, params: unknown): Promise<unknown> {
    const reply = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const { result, error } = (await reply.json()) as { result?: unknown; error?: object };
    if (error !== undefined) throw Object.assign(new Error('the node refused'), error);
    return result;
  }

  const provider = {
    async request({ method, params = [] }: { method: string; params?: unknown[] }): Promise<unknown> {
      const account = at === null ? undefined : addresses[at];
      if (method === 'eth_requestAccounts' || method === 'eth_accounts') return account === undefined ? [] : [account];
      if (method === 'eth_chainId' && chainId !== null) return chainId;
      if (method === 'wallet_switchEthereumChain') {
        chainId = null;
        tell('chainChanged', (params[0] as { chainId: string }).chainId);
        return null;
      }
      if (mode === 'refuse' && /^eth_(?:sendTransaction|signTypedData)/.test(method))
        throw Object.assign(new Error('User rejected the request.'), { code: 4001 });
      if (mode === 'hold' && method === 'eth_getTransactionReceipt') return null;
      if (mode === 'hold' && method === 'eth_getTransactionCount') return '0x0';
      return node(method, params);
    },
    on: (event: string, listener: (value: unknown) => void) => void (listeners[event] ??= []).push(listener),
    removeListener(event: string, listener: (value: unknown) => void) {
      listeners[event] = (listeners[event] ?? []).filter((one) => one !== listener);
    },
  };
  scope.standIn = {
    does(what: string) {
      mode = what;
      scope.sessionStorage.setItem('standIn', what);
    },
    goesTo(chain: string) {
      chainId = chain;
      tell('chainChanged', chain);
    },
    becomes(index: number | null) {
      at = index;
      tell('accountsChanged', index === null ? [] : [addresses[index]]);
    },
  };
  if (isInjected) {
    scope.ethereum = provider;
    return;
  }
  const info = {
    uuid: '5d9f1c9e-0000-4000-8000-000000000001',
    name: 'Stand-in',
    icon: 'data:image/gif;base64,R0lGODlhAQABAIAAAABXpv///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==',
    rdns: 'org.example.standin',
  };
  const announce = (): void =>
    scope.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }));
  scope.addEventListener('eip6963:requestProvider', announce);
  announce();
}
