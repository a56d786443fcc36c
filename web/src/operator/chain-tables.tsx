/** What was read of the chain, as present only while it can be read. */
import type { Loadable } from '../loadable.js';
import { shortHex, shown } from '../numbers.js';
import { isOld, Outdated } from '../states.js';
import type { ContractRow, SignerRow, SolvencyRow } from './chain.js';

export function SolvencyTable({ rows }: { rows: Loadable<readonly SolvencyRow[]> }) {
  if (rows.data === null) return <p role="status">{rows.error ?? 'Asking the chain …'}</p>;
  return (
    <>
      <Outdated what="Solvency" of={rows} />
      <div className={isOld(rows) ? 'scroll old' : 'scroll'} tabIndex={0} role="region" aria-label="Solvency by token">
        <table>
          <thead>
            <tr>
              <th scope="col">Token</th>
              <th scope="col" className="number">
                The ledger holds
              </th>
              <th scope="col" className="number">
                The custodian has
              </th>
              <th scope="col" className="number">
                Nobody's
              </th>
              <th scope="col">Whole</th>
            </tr>
          </thead>
          <tbody>
            {rows.data.map(({ token, held, onChain, unattributed, isWhole }) => (
              <tr key={token}>
                <td>{token}</td>
                <td className="number">{shown(held)}</td>
                <td className="number">{shown(onChain)}</td>
                <td className="number">{shown(unattributed)}</td>
                <td className={isWhole ? 'good' : 'bad'}>{isWhole ? '✓ yes' : '✗ less'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface Roles {
  contracts: readonly ContractRow[];
  signers: readonly SignerRow[];
}

export function RoleTables({ rows }: { rows: Loadable<Roles | null> }) {
  if (rows.data === null) return <p role="status">{rows.error ?? 'Asking the chain …'}</p>;
  const yes = (is: boolean): string => (is ? '✓' : '–');
  return (
    <section aria-label="Roles">
      <h2>Roles, as the chain has them</h2>
      <Outdated what="Roles" of={rows} />
      <div className={isOld(rows) ? 'scroll old' : 'scroll'} tabIndex={0} role="region" aria-label="Signers">
        <table>
          <caption>Signers of this server</caption>
          <thead>
            <tr>
              <th scope="col">Signer</th>
              <th scope="col" className="number">
                ETH for gas
              </th>
              <th scope="col">Posts curves</th>
              <th scope="col">Settles withdrawals</th>
              <th scope="col">Executes signed orders</th>
            </tr>
          </thead>
          <tbody>
            {rows.data.signers.map(({ address, eth, isPoster, isSettler, isExecutor }) => (
              <tr key={address}>
                <td>
                  <code title={address}>{shortHex(address)}</code>
                </td>
                <td className="number">{shown(eth, 6)}</td>
                <td>{yes(isPoster)}</td>
                <td>{yes(isSettler)}</td>
                <td>{yes(isExecutor)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className={isOld(rows) ? 'scroll old' : 'scroll'} tabIndex={0} role="region" aria-label="Contracts">
        <table className="addresses">
          <caption>Contracts: compare these with what was published</caption>
          <thead>
            <tr>
              <th scope="col">Contract</th>
              <th scope="col">Address</th>
              <th scope="col">Owner</th>
              <th scope="col">Runs the code at</th>
            </tr>
          </thead>
          <tbody>
            {rows.data.contracts.map(({ name, address, owner, implementation }) => (
              <tr key={name}>
                <td>{name}</td>
                <td>
                  <code>{address}</code>
                </td>
                <td>{owner === null ? '–' : <code>{owner}</code>}</td>
                <td>{implementation === null ? '–' : <code>{implementation}</code>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
