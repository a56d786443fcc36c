import { useMemo } from 'react';
import type { Status } from '../market-context.js';
import { useShown } from '../market-context.js';
import { useRead } from '../platform.js';
import { chainOf, onChain } from '../wallet/provider.js';
import { useWallets } from '../wallet/session.js';
import { RoleTables, SolvencyTable } from './chain-tables.js';
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
      {chain === null ? <p role="status">{NO_CHAIN}</p> : <SolvencyTable rows={rows} />}
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
  return chain === null ? <p role="status">{NO_CHAIN}</p> : <RoleTables rows={rows} />;
}
