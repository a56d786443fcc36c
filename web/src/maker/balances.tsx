import { useEffect, useState } from 'react';
import { CurvebookError } from '../../../sdk/src/index.js';
import type { MakerClient } from '../../../sdk/src/maker.js';
import { verifyProof } from '../../../sdk/src/verify/proof.js';
import type { Address } from '../../../core/types.js';
import { useShown } from '../market-context.js';
import type { Loadable } from '../loadable.js';
import { LIST_PLACES, shortHex, shown } from '../numbers.js';
import { usePlatform } from '../platform.js';
import { Age } from '../states.js';
import { useOnce } from '../wallet/pending-view.js';
import { Said, useActing } from './acting.js';
import { isUncounted } from './requested.js';
import type { Requested } from './requested.js';
import type { Limits, Withdrawals } from './steps.js';

interface BalancesProps {
  address: string;
  limits: Loadable<Limits>;
  withdrawals: Withdrawals | null;
  custody: MakerClient | null;
  requested: Requested;
  onRequested(token: string, hash: string): void;
}

/** What the account has in the ledger, what of it open orders and withdrawals lean on, and what is left for new ones. */
export function Balances({
  address,
  limits: { data: limits, atMs },
  withdrawals,
  custody,
  requested,
  onRequested,
}: BalancesProps) {
  const { status } = useShown();
  const acting = useActing();
  /** The token of which all shall be withdrawn although a request is not counted yet. */
  const [asked, setAsked] = useState<string | null>(null);
  const once = useOnce(address, '', (_act, token) => {
    if (limits !== null && isUncounted(requested.get(token), limits, withdrawals)) setAsked(token);
    else withdraw(token);
  });
  if (limits === null) return <p role="status">Loading balances …</p>;
  const rows = limits.ledger.balances;
  // The stream tells at once that the ledger is ready again; what was read before says otherwise until it is read anew.
  const isReady = limits.ledger.ready || (status.data?.ready === true && (status.atMs ?? 0) > (atMs ?? 0));

  /** Asks for all of a token that is free now. */
  function withdraw(token: string): void {
    const units = limits?.ledger.balances.find((row) => row.token === token)?.available;
    if (units === undefined || !isSome(units)) return;
    setAsked(null);
    acting.act(async () => {
      const hash = await custody?.requestWithdraw(token, units);
      if (hash !== undefined) onRequested(token, hash);
      return `the request of ${units} ${token} is on the chain; the ledger reads it with its block`;
    });
  }

  return (
    <section aria-label="Inventory">
      <h2>Inventory against its limits</h2>
      {!isReady && (
        <p role="status" className="bad">
          The ledger is not ready: {limits.ledger.reason}. What is shown is of its last block.
        </p>
      )}
      <div className="scroll" tabIndex={0} role="region" aria-label="Balances">
        <table>
          <thead>
            <tr>
              <th scope="col">Token</th>
              <th scope="col" className="number">
                Balance
              </th>
              <th scope="col" className="number">
                Reserved
              </th>
              <th scope="col" className="number">
                For new orders
              </th>
              <th scope="col" className="number">
                Brought in, net
              </th>
              <th scope="col">
                <span className="unseen">Acts</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.token}>
                <td>{row.token}</td>
                <Amount value={row.balance} />
                <Amount value={row.reserved} />
                <Amount value={row.available} />
                <Amount value={row.net_capital} />
                <td>
                  {isSome(row.available) && (
                    <button
                      type="button"
                      disabled={custody === null || acting.busy}
                      aria-label={`Withdraw all ${row.token} that is free`}
                      onClick={() => once.ask('requestWithdraw', row.token)}
                    >
                      Withdraw all
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {once.question}
      {asked !== null && isUncounted(requested.get(asked), limits, withdrawals) && (
        <div className="row">
          <p role="alert" className="bad">
            The ledger has not read your last request of {asked} yet: what is shown as free may still include it.
          </p>
          <button type="button" onClick={() => withdraw(asked)}>
            Ask for what is shown
          </button>
          <button type="button" onClick={() => setAsked(null)}>
            Send nothing
          </button>
        </div>
      )}
      <Said acting={acting} />
    </section>
  );
}

const isSome = (amount: string): boolean => /^[^-]*[1-9]/.test(amount);

/** An amount in a list; all its digits are in the title. */
function Amount({ value }: { value: string }) {
  return (
    <td className={value.startsWith('-') ? 'number bad' : 'number'} title={value}>
      {shown(value, LIST_PLACES)}
    </td>
  );
}

/** A balance in the newest checkpoint, hashed up to its root here. */
interface Proven {
  seq: number;
  root: string;
  timestampMs: number;
  balances: readonly { token: string; balance: string }[];
}

/** Proof that the account's balances are in the checkpoint that everybody is shown. */
export function BalanceProof({ address }: { address: string }) {
  const { deployment, status } = useShown();
  const { read } = usePlatform();
  const [proven, setProven] = useState<Proven | null>(null);
  const acting = useActing();
  const check = async (): Promise<string> => {
    setProven(null);
    try {
      return await compare();
    } catch (error) {
      if (error instanceof CurvebookError && error.code === 'NOT_READY') return 'no checkpoint is published yet';
      throw error;
    }
  };
  const compare = async (): Promise<string> => {
    // A newer checkpoint may come between the two answers: asked once more then.
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const [proof, checkpoint] = [await read.proof(address), await read.checkpoint()];
      if (proof.seq !== checkpoint.seq) continue;
      if (proof.root !== checkpoint.root) throw new Error(`the proof is of another root: ${proof.root}`);
      const balances = verifyProof(deployment, address as Address, proof);
      setProven({ seq: proof.seq, root: proof.root, timestampMs: checkpoint.timestamp_ms, balances });
      return balances.length === 0
        ? 'the newest checkpoint has no balance of this address'
        : `${balances.length} balances are under the root of checkpoint ${proof.seq}: computed in this browser`;
    }
    throw new Error('checkpoints come faster than their proofs: try again');
  };
  const { act } = acting;
  const newest = status.data?.checkpoint?.seq ?? 0;
  const isProven = proven !== null && proven.balances.length > 0;
  // Nobody needs to ask for it: what can be checked is checked, and again at each checkpoint until there is a balance in one.
  useEffect(() => {
    if (!isProven) act(check);
  }, [act, address, newest]);
  return (
    <section aria-label="Proof">
      <h2>Proof of my balance</h2>
      <button type="button" disabled={acting.busy} onClick={() => acting.act(check)}>
        Check against the newest checkpoint
      </button>
      <Said acting={acting} />
      {proven !== null && proven.balances.length > 0 && (
        <>
          <p>
            Root <code title={proven.root}>{shortHex(proven.root)}</code>, <Age sinceMs={proven.timestampMs} /> old.
            Compare it with the one that others are shown: <a href="/v0/checkpoints/latest">the checkpoint</a>.
          </p>
          <ul>
            {proven.balances.map(({ token, balance }) => (
              <li key={token}>
                ✓ {shown(balance)} {token}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
