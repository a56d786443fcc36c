import { useState } from 'react';
import type { Deployment } from '../market-context.js';
import { shortHex } from '../numbers.js';
import { explained } from '../explained.js';
import { useWallets } from './session.js';
import { switchChain } from './signer.js';

/** The account that acts, and the choice of another: wallets of the browser, and the accounts of a sandbox. */
export function AccountMenu() {
  const { found, accounts, session, connect, actAs, leave } = useWallets();
  const chosen = session === null ? '' : session.kind === 'sandbox' ? `sandbox:${session.name}` : 'wallet';
  return (
    <div className="account">
      {accounts.length > 0 && (
        <label>
          Act as{' '}
          <select
            value={chosen.startsWith('sandbox:') ? chosen.slice(8) : ''}
            onChange={({ target }) => {
              const account = accounts.find(({ role }) => role === target.value);
              if (account === undefined) leave();
              else actAs(account);
            }}
          >
            <option value="">nobody</option>
            {accounts.map(({ role }) => (
              <option key={role}>{role}</option>
            ))}
          </select>
        </label>
      )}
      {session?.kind !== 'wallet' &&
        found.map((wallet) => (
          <button type="button" key={wallet.info.uuid} onClick={() => connect(wallet)}>
            {wallet.info.icon !== '' && <img src={wallet.info.icon} alt="" width="18" height="18" />} Connect{' '}
            {wallet.info.name}
          </button>
        ))}
      {session !== null && (
        <span>
          {session.kind === 'wallet' && `${session.name} `}
          <code title={session.address}>{shortHex(session.address)}</code>
        </span>
      )}
      {session?.kind === 'wallet' && (
        <button type="button" onClick={leave}>
          Disconnect
        </button>
      )}
    </div>
  );
}

/** What the wallet is asked to change before it can trade, and what went wrong with it. */
export function WalletBanner({ deployment }: { deployment: Deployment }) {
  const { session, failure } = useWallets();
  const [said, setSaid] = useState<string | null>(null);
  if (session !== null && session.chainId !== deployment.chain_id) {
    return (
      <p className="banner stale" role="alert">
        <strong>Another chain.</strong> {session.name} is on chain {session.chainId ?? 'unknown'}, and this deployment
        on {deployment.chain_id}. Nothing is signed or sent there.{' '}
        <button
          type="button"
          onClick={() =>
            void switchChain(session.provider, deployment).then(
              () => setSaid(null),
              (error: unknown) => setSaid(explained(error)),
            )
          }
        >
          Switch to chain {deployment.chain_id}
        </button>{' '}
        {said}
      </p>
    );
  }
  if (failure === null) return null;
  return (
    <p className="banner stale" role="alert">
      <strong>Wallet.</strong> {failure}
    </p>
  );
}

/** Shown where an account must be chosen first; in a sandbox the account that fits the page is one click away. */
export function NobodyActs({ role }: { role: string }) {
  const { found, accounts, actAs } = useWallets();
  const fitting = accounts.find((one) => one.role === role);
  return (
    <div className="row">
      <p role="status">
        {found.length + accounts.length > 0
          ? 'Nobody acts yet: choose an account or connect a wallet at the top of the page.'
          : 'No wallet was found in this browser. Install one that announces itself (EIP-6963), then reload.'}
      </p>
      {fitting !== undefined && (
        <button type="button" onClick={() => actAs(fitting)}>
          Act as {role}
        </button>
      )}
    </div>
  );
}
