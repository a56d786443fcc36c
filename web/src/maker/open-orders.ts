import { useEffect, useState } from 'react';
import { followOrders } from '../../../sdk/src/stream.js';
import type { OrderState } from '../../../sdk/src/stream.js';
import { usePlatform } from '../platform.js';

/** The account's open orders, as the stream tells of them; null before they are known, and for nobody. */
export function useOpenOrders(address: string | null): OrderState | null {
  const { stream, read } = usePlatform();
  const [held, setHeld] = useState<{ address: string; state: OrderState } | null>(null);
  useEffect(() => {
    if (address === null) return undefined;
    return followOrders(stream, read, address, {
      // The map is the follower's own and goes on changing: what is drawn is a copy.
      onOrders: ({ isComplete, open }) => setHeld({ address, state: { isComplete, open: new Map(open) } }),
    });
  }, [stream, read, address]);
  return held?.address === address ? held.state : null;
}
