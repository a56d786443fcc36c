/** Asks before a token is sold once more while a signed order that sells it may still be executed. */
import { useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { formatUnits } from '../../../core/amounts.js';
import { explained } from '../explained.js';
import { useShown } from '../market-context.js';
import { shown } from '../numbers.js';
import { usePlatform } from '../platform.js';
import { Countdown } from '../states.js';
import type { Token } from './terms.js';
import { unsureOrders, waitingOrder } from './waiting-orders.js';
import type { WaitingOrder } from './waiting-orders.js';

/** What was found; an error where it is not known whether an order waits. */
type Found = { token: Token; order: WaitingOrder; error: null } | { token: Token; order: null; error: string };

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

/** Says which order waits, and asks whether to go on all the same. */
export function OrderQuestion({ found, onAnswer }: { found: Found; onAnswer(isYes: boolean): void }) {
  const { token, order, error } = found;
  return (
    <div className="row">
      <p role="alert" className="bad">
        {order === null ? (
          `Whether a signed order that sells ${token.symbol} waits is not known: ${error}`
        ) : (
          <>
            {order.sellUnits === null
              ? `What became of order ${order.id}, which sells ${token.symbol}, is not known. It may be executed`
              : `Order ${order.id}, which sells ${shown(formatUnits(order.sellUnits, token.decimals))} ${token.symbol}, still waits. It may be executed`}{' '}
            (<Countdown untilSec={order.untilSec} /> left) beside what you do now.
          </>
        )}
      </p>
      <button type="button" onClick={() => onAnswer(true)}>
        Go on all the same
      </button>
      <button type="button" onClick={() => onAnswer(false)}>
        Do nothing
      </button>
    </div>
  );
}
