import { useState } from 'react';
import { verifyProof } from '../../../sdk/src/verify/proof.js';
import type { Address } from '../../../core/types.js';
import { useShown } from '../market-context.js';
import { shortHex, shown } from '../numbers.js';
import { usePlatform } from '../platform.js';
import { Age } from '../states.js';
import { Said, useActing } from './acting.js';
import type { Limits } from './steps.js';

/** What the account has in the ledger, what of it open orders and withdrawals lean on, and what is left for new ones. */
export function Balances({ limits }: { limits: Limits | null }) {
  if (limits === null) return <p role="status">Loading balances …</p>;
  const rows = limits.ledger.balances;
  return (
    <section aria-label="Inventory">
      <h2>Inventory against its limits</h2>
      {!limits.ledger.ready && (
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
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.token}>
                <td>{row.token}</td>
                <td className={row.balance.startsWith('-') ? 'number bad' : 'number'}>{shown(row.balance)}</td>
                <td className="number">{shown(row.reserved)}</td>
                <td className="number">{shown(row.available)}</td>
                <td className="number">{shown(row.net_capital)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
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
  const { deployment } = useShown();
  const { read } = usePlatform();
  const [proven, setProven] = useState<Proven | null>(null);
  const acting = useActing();
  const check = async (): Promise<string> => {
    setProven(null);
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
