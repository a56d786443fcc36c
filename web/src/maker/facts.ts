/** Facts that a maker's page reads repeatedly, and the key that its tab holds. */
import { useEffect, useState } from 'react';
import { callData, firstWord } from '../../../sdk/src/wallet.js';
import type { Address } from '../../../core/types.js';
import type { Deployment } from '../market-context.js';
import { useRead } from '../platform.js';
import { agentAddress, storedAgent } from '../wallet/agents.js';
import type { Session } from '../wallet/session.js';
import type { TabAgent } from './agent.js';
import type { MakerFacts } from './steps.js';

const EVERY_MS = 2_000;

export function useMakerFacts(session: Session, deployment: Deployment): MakerFacts {
  const { address } = session;
  const path = { maker: address };
  return {
    account: useRead(`account/${address}`, (read) => read.get('/v0/makers/{maker}/account', { path }), EVERY_MS),
    limits: useRead(`limits/${address}`, (read) => read.limits(address), EVERY_MS),
    withdrawals: useRead(`withdrawals/${address}`, (read) => read.withdrawals(address), EVERY_MS),
    allowances: useRead(
      `allowances/${address}`,
      async () => {
        const custodian = deployment.contracts.custodian?.address as Address;
        const data = callData('allowance(address,address)', [address as Address, custodian]);
        const asked = deployment.tokens.map(async (token) => {
          const answer = await session.reader.call({ to: token.address as Address, data });
          return [token.address, firstWord(answer)] as const;
        });
        return new Map(await Promise.all(asked));
      },
      3 * EVERY_MS,
    ),
  };
}

/** The key that this tab holds for a maker, and what takes a new one in its place. Deployment and maker stay the same for as long as it is drawn. */
export function useTabAgent(deploymentId: string, maker: string): [TabAgent | null, (key: string) => void] {
  const [held, hold] = useState<TabAgent | null>(() => {
    const key = storedAgent(deploymentId, maker);
    return key === null ? null : { key, address: null, sinceMs: 0 };
  });
  const key = held?.key ?? null;
  useEffect(() => {
    if (key === null) return;
    // What is no key is nobody's.
    const derived = agentAddress(key).catch(() => '');
    void derived.then((address) => hold((now) => (now?.key === key ? { ...now, address } : now)));
  }, [key]);
  return [held, (adopted) => hold({ key: adopted, address: null, sinceMs: Date.now() })];
}
