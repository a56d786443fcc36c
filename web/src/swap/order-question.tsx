import { formatUnits } from '../../../core/amounts.js';
import { shown } from '../numbers.js';
import { Countdown } from '../states.js';
import type { Token } from './terms.js';
import type { WaitingOrder } from './waiting-orders.js';

/** What was found; an error where it is not known whether an order waits. */
export type Found = { token: Token; order: WaitingOrder; error: null } | { token: Token; order: null; error: string };

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
