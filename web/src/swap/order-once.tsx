/** Asks before a token is sold once more while a signed order that sells it may still be executed. */
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { explained } from '../explained.js';
import { useShown } from '../market-context.js';
import { usePlatform } from '../platform.js';
import { OrderQuestion } from './order-question.js';
import type { Found } from './order-question.js';
import type { Token } from './terms.js';
import { unsureOrders, waitingOrder } from './waiting-orders.js';

interface OrderOnce {
  /** Goes on, or asks first where an order waits that sells the token. */
  ask(token: Token): void;
  /** The server is asked for orders that wait. */
  isAsking: boolean;
  /** What is asked; null while nothing is. */
  question: ReactNode;
}

/** `goOn` does what the page shows then; `about` says what that is: a question about something else is taken back, and nothing is done for it. */
export function useOrderOnce(account: string | null, about: string, goOn: () => void): OrderOnce {
  const { deployment } = useShown();
  const { read } = usePlatform();
  const [asked, setAsked] = useState<{ about: string; found: Found | null } | null>(null);
  const now = useRef<{ about: string; goOn: () => void } | null>(null);
  useEffect(() => {
    now.current = { about, goOn };
  });
  useEffect(
    () => () => {
      now.current = null;
    },
    [],
  );
  const current = asked?.about === about ? asked : null;

  async function look(token: Token): Promise<void> {
    const selling = { account: account ?? '', deployment: deployment.deployment_id, token: token.address };
    const found = await waitingOrder(read, unsureOrders, selling).then(
      (order): Found | null => (order === null ? null : { token, order, error: null }),
      (error: unknown): Found => ({ token, order: null, error: explained(error) }),
    );
    if (now.current?.about !== about) return;
    setAsked(found === null ? null : { about, found });
    if (found === null) now.current.goOn();
  }

  return {
    ask(token) {
      if (account === null || deployment.contracts.orderSettler === undefined) return goOn();
      setAsked({ about, found: null });
      void look(token);
    },
    isAsking: current !== null && current.found === null,
    question:
      current === null || current.found === null ? null : (
        <OrderQuestion
          found={current.found}
          onAnswer={(isYes) => {
            setAsked(null);
            if (isYes) goOn();
          }}
        />
      ),
  };
}
