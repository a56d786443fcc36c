/** Transactions of whoever acts that are not mined yet: shown, looked for, and not sent twice unasked. */
import { useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { ReactNode } from 'react';
import { formatUnits } from '../../../core/amounts.js';
import { useShown } from '../market-context.js';
import type { Deployment } from '../market-context.js';
import { shown } from '../numbers.js';
import { useRead } from '../platform.js';
import { Age } from '../states.js';
import { TransactionLink } from '../swap/receipt.js';
import { createLook } from './mined.js';
import type { Fate, Look } from './mined.js';
import { pendings, sameAs } from './pending.js';
import type { Act, Pending } from './pending.js';
import { chainOf, readsOf } from './provider.js';
import type { Session } from './session.js';

const LOOK_EVERY_MS = 3_000;

const NAMES: Readonly<Record<Act, string>> = {
  approve: 'The allowance',
  swap: 'The swap',
  deposit: 'The deposit',
  requestWithdraw: 'The withdrawal request',
  executeWithdraw: 'The withdrawal',
  other: 'A transaction',
};

/** Such as `The deposit of 8 WETH`. */
function named({ act, token, units }: Pending, { tokens }: Deployment): string {
  const known = tokens.find(({ address }) => address === token);
  if (known === undefined) return NAMES[act];
  const amount = units === null ? '' : `${shown(formatUnits(BigInt(units), known.decimals))} `;
  return `${NAMES[act]} of ${amount}${known.symbol}`;
}

const FATES: Readonly<Record<Fate, string>> = {
  mined: '✓ is on the chain',
  reverted: '✗ reverted: nothing was moved',
  replaced:
    '✗ another transaction of the account took its place: look in the wallet whether it was sped up or cancelled',
};

/** What waits, and what became of what waited while nobody was told. Looks again while it is shown; what the page has just sent is looked for by its signer. */
export function PendingList({ session }: { session: Session }) {
  const { deployment } = useShown();
  const waiting = useOwn(session.address, pendings.all);
  const ended = useOwn(session.address, pendings.ended);
  const [asked, setAsked] = useState<string | null>(null);
  const chain = chainOf(session, deployment);
  const looks = useRef(new Map<string, Look>());
  const unwatched = waiting.filter(({ hash }) => !pendings.isAwaited(hash));
  const reads = useMemo(() => readsOf(session.provider, deployment), [session.provider, deployment]);
  useRead(
    chain === null || unwatched.length === 0
      ? null
      : `pending/${chain.source}/${unwatched.map(({ hash }) => hash).join()}`,
    () =>
      Promise.all(
        unwatched.map(async (one) => {
          const at = `${chain?.source}/${one.hash}`;
          const look = looks.current.get(at) ?? createLook(reads, one);
          looks.current.set(at, look);
          // A look that fails says nothing: there is another one soon.
          const fate = await look.look().catch(() => null);
          const nonce = look.nonce();
          if (nonce !== null) pendings.learn(one.hash, nonce);
          if (fate !== null) pendings.end(one.hash, fate);
        }),
      ),
    LOOK_EVERY_MS,
  );
  if (waiting.length + ended.length === 0) return null;
  return (
    <ul className="timeline" aria-label="Transactions that wait">
      {waiting.map((one) => (
        <li key={one.hash}>
          <span role="status">
            … {named(one, deployment)} waits to be mined: <TransactionLink hash={one.hash} />, sent{' '}
            <Age sinceMs={one.sentMs} /> ago.
          </span>
          {pendings.isAwaited(one.hash) ? null : asked === one.hash ? (
            <>
              <span>It may still be mined; only the wallet can cancel it.</span>
              <button
                type="button"
                onClick={() => {
                  setAsked(null);
                  pendings.drop(one.hash);
                }}
              >
                Forget it all the same
              </button>
            </>
          ) : (
            <button type="button" onClick={() => setAsked(one.hash)}>
              Forget it
            </button>
          )}
        </li>
      ))}
      {ended.map((one) => (
        <li key={one.hash}>
          <span role={one.fate === 'mined' ? 'status' : 'alert'} className={one.fate === 'mined' ? 'good' : 'bad'}>
            {named(one, deployment)} (<TransactionLink hash={one.hash} />) {FATES[one.fate]}.
          </span>
          <button type="button" onClick={() => pendings.drop(one.hash)}>
            Close
          </button>
        </li>
      ))}
    </ul>
  );
}

interface Once {
  /** Sends what the page shows, or asks first where the same waits to be mined. The token is named by its symbol. */
  ask(act: Act, token: string): void;
  /** What is asked; null while nothing is. */
  question: ReactNode;
}

/**
 * Guards acts that send a transaction. `send` is called with what was asked for; what it sends is what the page shows then. `about` says what is
 * shown: a question about something else is taken back.
 */
export function useOnce(account: string | null, about: string, send: (act: Act, token: string) => void): Once {
  const { deployment } = useShown();
  const waiting = useOwn(account, pendings.all);
  const [asked, setAsked] = useState<{ act: Act; token: string; about: string; hash: string } | null>(null);
  const open = asked?.about === about ? waiting.find(({ hash }) => hash === asked.hash) : undefined;
  return {
    ask(act, token) {
      const address = deployment.tokens.find(({ symbol }) => symbol === token)?.address ?? '';
      const wanted = { account: account ?? '', deployment: deployment.deployment_id, act, token: address };
      const same = sameAs(pendings.all(), wanted);
      setAsked(same === null ? null : { act, token, about, hash: same.hash });
      if (same === null) send(act, token);
    },
    question:
      asked === null || open === undefined ? null : (
        <div className="row">
          <p role="alert" className="bad">
            {named(open, deployment)} still waits to be mined: <TransactionLink hash={open.hash} />. Another one would
            be sent beside it, and both may be mined.
          </p>
          <button
            type="button"
            onClick={() => {
              setAsked(null);
              send(asked.act, asked.token);
            }}
          >
            Send another
          </button>
          <button type="button" onClick={() => setAsked(null)}>
            Send nothing
          </button>
        </div>
      ),
  };
}

/** Those of an account in this deployment. */
function useOwn<T extends Pending>(account: string | null, read: () => readonly T[]): readonly T[] {
  const { deployment_id: id } = useShown().deployment;
  const all = useSyncExternalStore(onChange, read);
  return useMemo(() => all.filter((one) => one.account === account && one.deployment === id), [all, account, id]);
}

/** Here, and in other tabs. */
function onChange(listener: () => void): () => void {
  const stop = pendings.onChange(listener);
  window.addEventListener('storage', listener);
  return () => {
    stop();
    window.removeEventListener('storage', listener);
  };
}
