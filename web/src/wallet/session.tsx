import { createContext, use, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import type { Reader, Signer } from '../../../sdk/src/taker.js';
import type { Deployment } from '../market-context.js';
import { usePlatform } from '../platform.js';
import { explained } from '../explained.js';
import { discoverWallets } from './discovery.js';
import type { FoundWallet } from './discovery.js';
import { createRpc, readsOf } from './provider.js';
import type { Provider } from './provider.js';
import { readerOf, signerOf } from './signer.js';

/** An account that the page acts as. */
export interface Session {
  address: string;
  name: string;
  /** Keys of a sandbox are in the page; a wallet is asked for each signature. */
  kind: 'sandbox' | 'wallet';
  provider: Provider;
  signer: Signer;
  /** Of the deployment's chain, wherever the wallet is. */
  reader: Reader;
  /** Where the wallet is; trades are refused where this is not the deployment's chain. */
  chainId: number | null;
}

export interface SandboxAccount {
  role: string;
  address: string;
  private_key: string;
}

interface Wallets {
  found: readonly FoundWallet[];
  accounts: readonly SandboxAccount[];
  session: Session | null;
  failure: string | null;
  connect(wallet: FoundWallet): void;
  actAs(account: SandboxAccount): void;
  leave(): void;
}

const WalletsContext = createContext<Wallets | null>(null);

export function useWallets(): Wallets {
  const wallets = use(WalletsContext);
  if (wallets === null) throw new Error('no wallets around this component');
  return wallets;
}

/** What acted last in this tab, so that a reload goes on with it: `sandbox:<role>` or `wallet:<rdns>`. */
const REMEMBERED = 'curvebook.session';

function remember(what: string | null): void {
  try {
    if (what === null) sessionStorage.removeItem(REMEMBERED);
    else sessionStorage.setItem(REMEMBERED, what);
  } catch {
    // A browser that stores nothing asks again after a reload.
  }
}

function remembered(): string | null {
  try {
    return sessionStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

const chainNumber = (said: unknown): number | null =>
  typeof said === 'string' && /^0x[0-9a-fA-F]{1,13}$/.test(said) ? parseInt(said, 16) : null;

const addressIn = (said: unknown): string | null => {
  const first: unknown = Array.isArray(said) ? said[0] : null;
  return typeof first === 'string' && /^0x[0-9a-fA-F]{40}$/.test(first) ? first.toLowerCase() : null;
};

/** Knows the wallets of the browser and, in a sandbox, its accounts, and which of them acts. */
export function WalletsProvider({ deployment, children }: { deployment: Deployment; children: ReactNode }) {
  const { read } = usePlatform();
  const [found, setFound] = useState<readonly FoundWallet[]>([]);
  const [accounts, setAccounts] = useState<readonly SandboxAccount[]>([]);
  const [session, setSession] = useState<Session | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  /** Ends the listening to the wallet that acts. */
  const ending = useRef<() => void>(() => undefined);

  const leave = useCallback(() => {
    ending.current();
    ending.current = () => undefined;
    remember(null);
    setSession(null);
  }, []);

  const follow = useCallback(
    async ({ info, provider }: FoundWallet, method: 'eth_requestAccounts' | 'eth_accounts') => {
      let address = addressIn(await provider.request({ method }));
      if (address === null) return;
      let chainId: number | null | undefined;
      let isFollowed = true;
      const reader = readerOf(readsOf(provider, deployment));
      const show = (): void => {
        if (address === null || chainId === undefined || !isFollowed) return;
        const signer = signerOf(provider, address, deployment);
        setSession({ address, name: info.name, kind: 'wallet', provider, chainId, signer, reader });
      };
      const onAccounts = (said: unknown): void => {
        address = addressIn(said);
        if (address === null) leave();
        else show();
      };
      const onChain = (said: unknown): void => {
        chainId = chainNumber(said);
        show();
      };
      // Listened to before anything else is asked: a change meanwhile would go unheard.
      ending.current();
      provider.on?.('accountsChanged', onAccounts);
      provider.on?.('chainChanged', onChain);
      ending.current = () => {
        isFollowed = false;
        provider.removeListener?.('accountsChanged', onAccounts);
        provider.removeListener?.('chainChanged', onChain);
      };
      remember(`wallet:${info.rdns}`);
      const asked = await provider.request({ method: 'eth_chainId' }).catch(() => null);
      if (chainId === undefined) onChain(asked);
    },
    [deployment, leave],
  );

  const begin = useCallback(async (job: () => Promise<void>) => {
    setFailure(null);
    try {
      await job();
    } catch (error) {
      setFailure(explained(error));
    }
  }, []);

  const actAs = useCallback(
    (account: SandboxAccount) =>
      void begin(async () => {
        const { keyProvider } = await import('./key-provider.js');
        const rpc = deployment.rpc_url === null ? null : createRpc(deployment.rpc_url);
        const provider = keyProvider(account.private_key, rpc);
        const { address } = provider;
        ending.current();
        ending.current = () => undefined;
        remember(`sandbox:${account.role}`);
        setSession({
          ...{ address, name: account.role, kind: 'sandbox', provider, chainId: deployment.chain_id },
          signer: signerOf(provider, address, deployment),
          reader: readerOf(provider),
        });
      }),
    [begin, deployment],
  );

  useEffect(() => {
    const wanted = remembered();
    return discoverWallets((wallets) => {
      setFound(wallets);
      const known = wallets.find(({ info }) => `wallet:${info.rdns}` === wanted);
      if (known !== undefined && remembered() === wanted) void begin(() => follow(known, 'eth_accounts'));
    });
  }, [begin, follow]);

  useEffect(() => {
    if (!deployment.sandbox) return;
    void fetch(`${read.url}/sandbox/accounts`)
      .then(async (reply) => (reply.ok ? ((await reply.json()) as SandboxAccount[]) : []))
      .then((list) => {
        setAccounts(list);
        const known = list.find(({ role }) => `sandbox:${role}` === remembered());
        if (known !== undefined) actAs(known);
      })
      // Who is not on the machine of the sandbox has no such accounts.
      .catch(() => setAccounts([]));
  }, [read, deployment.sandbox, actAs]);

  const value = useMemo<Wallets>(
    () => ({
      ...{ found, accounts, session, failure, actAs, leave },
      connect: (wallet) => void begin(() => follow(wallet, 'eth_requestAccounts')),
    }),
    [found, accounts, session, failure, actAs, leave, begin, follow],
  );
  return <WalletsContext value={value}>{children}</WalletsContext>;
}
