import { callData, firstWord } from '../../../sdk/src/wallet.js';
import type { Address } from '../../../core/types.js';
import type { Loadable } from '../loadable.js';
import { useRead } from '../platform.js';
import type { Session } from './session.js';

/** What an account holds of a token, in base units, asked of the chain by the account's own endpoint. */
export function useBalance(session: Session | null, token: { address: string }): Loadable<bigint> {
  return useRead(
    session === null ? null : `balance/${session.address}/${token.address}`,
    async () => {
      const data = callData('balanceOf(address)', [session?.address as Address]);
      return firstWord((await session?.reader.call({ to: token.address as Address, data })) ?? '0x');
    },
    3_000,
  );
}
