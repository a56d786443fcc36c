import { callData, firstWord } from '../../../sdk/src/wallet.js';
import type { Address } from '../../../core/types.js';
import { useShown } from '../market-context.js';
import type { Loadable } from '../loadable.js';
import { useRead } from '../platform.js';
import { chainOf } from './provider.js';
import type { Session } from './session.js';

/** What an account holds of a token on the deployment's chain, in base units; nothing while nobody can be asked there. */
export function useBalance(session: Session | null, token: { address: string }): Loadable<bigint> {
  const { deployment } = useShown();
  const source = session === null ? null : (chainOf(session, deployment)?.source ?? null);
  return useRead(
    session === null || source === null ? null : `balance/${source}/${session.address}/${token.address}`,
    async () => {
      const data = callData('balanceOf(address)', [session?.address as Address]);
      return firstWord((await session?.reader.call({ to: token.address as Address, data })) ?? '0x');
    },
    3_000,
  );
}
