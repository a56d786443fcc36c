import { useMemo } from 'react';
import type { Status } from '../market-context.js';
import { useShown } from '../market-context.js';
import { shortHex, shown } from '../numbers.js';
import { useRead } from '../platform.js';
import { chainOf, onChain } from '../wallet/provider.js';
import { useWallets } from '../wallet/session.js';
import { contractRows, signerRows, solvencyRows } from './chain.js';

/** The deployment's chain as the wallet sees it that is there, or by the endpoint that the server names; null without either. */
export function useChain(): ReturnType<typeof chainOf> {
  const { deployment } = useShown();
  const { session } = useWallets();
  return useMemo(() => chainOf(session, deployment), [session, deployment]);
}

export const NO_CHAIN =
  'The chain is asked by your wallet, or by PUBLIC_RPC_URL where the operator names one: connect a wallet that is on it.';

/** Per token: what the ledger holds, and what the custodian has on the chain. */
export function Solvency() {
  const { deployment } = useShown();
  const chain = useChain();
  const rows = useRead(
    chain === null ? null : `solvency/${chain.source}`,
    async (read) => {
      if (chain === null) return [];
      const status = await read.status();
      return onChain(chain.provider, deployment.chain_id, () => solvencyRows(chain.provider, deployment, status));
    },
    4_000,
  );
  return (
    <section aria-label="Solvency">
      <h2>Solvency</h2>
      {chain === null ? (
        <p role="status">{NO_CHAIN}</p>
      ) : rows.data === null ? (
        <p role="status">{rows.error ?? 'Asking the chain …'}</p>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Solvency by token">
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
      )}
    </section>
  );
}

/** Who owns the contracts, what code they run, and what the server's signers may do: all asked of the chain. */
export function ChainRoles({ status }: { status: Status }) {
  const { deployment } = useShown();
  const chain = useChain();
  const named = status.keepers.flatMap(({ gas }) => (gas?.signer ? [gas.signer] : []));
  // Keys that were in use before may still have rights.
  const signers = [...new Set([...named, ...status.transactions.map(({ signer }) => signer)])];
  const rows = useRead(
    chain === null ? null : `roles/${chain.source}/${signers.join()}`,
    async () =>
      chain === null
        ? null
        : onChain(chain.provider, deployment.chain_id, async () => ({
            contracts: await contractRows(chain.provider, deployment),
            signers: await signerRows(chain.provider, deployment, signers),
          })),
    10_000,
  );
  if (chain === null) return <p role="status">{NO_CHAIN}</p>;
  if (rows.data === null) return <p role="status">{rows.error ?? 'Asking the chain …'}</p>;
  const yes = (is: boolean): string => (is ? '✓' : '–');
  return (
    <section aria-label="Roles">
      <h2>Roles, as the chain has them</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="Signers">
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
      <div className="scroll" tabIndex={0} role="region" aria-label="Contracts">
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
