/** The SDK's clients of whoever acts. */
import { useMemo } from 'react';
import { createMakerClient } from '../../../sdk/src/maker.js';
import type { MakerClient } from '../../../sdk/src/maker.js';
import { createTakerClient } from '../../../sdk/src/taker.js';
import type { Signer, TakerClient } from '../../../sdk/src/taker.js';
import type { Deployment } from '../market-context.js';
import { usePlatform } from '../platform.js';
import { agentSigner } from './agents.js';
import { createRpc } from './provider.js';
import { useWallets } from './session.js';
import { readerOf } from './signer.js';

const NOBODY = `0x${'0'.repeat(40)}`;

/** The taker's client of whoever acts; without anybody it only asks for prices, where the server names an endpoint. */
export function useTaker(deployment: Deployment): TakerClient | null {
  const { read } = usePlatform();
  const { session } = useWallets();
  return useMemo(() => {
    const { rpc_url: rpcUrl } = deployment;
    const reader = session?.reader ?? (rpcUrl === null ? null : readerOf(createRpc(rpcUrl)));
    if (reader === null) return null;
    const nobody: Signer = { address: NOBODY, signTypedData: () => Promise.reject(new Error('nobody acts')) };
    return createTakerClient({ url: read.url, signer: session?.signer ?? nobody, reader, contracts: 'server' });
  }, [read.url, deployment, session?.signer, session?.reader]);
}

/** The maker's clients of whoever acts: custody and agents by the wallet itself, orders by the wallet or by the agent that this page holds. */
export function useMaker(agentKey: string | null): { custody: MakerClient | null; orders: MakerClient | null } {
  const { read } = usePlatform();
  const { session } = useWallets();
  return useMemo(() => {
    if (session === null) return { custody: null, orders: null };
    const { signer, reader, kind } = session;
    const custody = createMakerClient({ url: read.url, signer, reader, contracts: 'server' });
    if (kind === 'sandbox') return { custody, orders: custody };
    const orders = agentKey === null ? null : createMakerClient({ url: read.url, signer: agentSigner(agentKey) });
    return { custody, orders };
  }, [read.url, session, agentKey]);
}
