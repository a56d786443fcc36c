import { useCallback, useEffect, useRef, useState } from 'react';
import { CurvebookError } from '../../../sdk/src/index.js';
import type { DirectSwap, GaslessQuote, LimitSwap, OrderStatus, TakerClient } from '../../../sdk/src/taker.js';
import { explained } from '../explained.js';
import { useShown } from '../market-context.js';
import type { Mode, Token } from './terms.js';
import { keepUnsure, unsureOrders } from './waiting-orders.js';

/** Where a swap stands, from the click to the chain. */
export interface Run {
  mode: Mode;
  /** Who swaps: the account of the page may be another one by the end. */
  taker: string;
  /** What is bought: the page may be about another token by the end. */
  buy: Token;
  stage: 'allowing' | 'quoting' | 'signing' | 'waiting' | 'sending' | 'done' | 'failed';
  quote: GaslessQuote | null;
  sinceMs: number;
  orderId: string | null;
  txHash: string | null;
  error: string | null;
}

export const STAGES: Readonly<Record<Mode, readonly (readonly [Run['stage'], string])[]>> = {
  gasless: [
    ['allowing', 'The token is allowed to Permit2 (once)'],
    ['quoting', 'Quote'],
    ['signing', 'Your signature'],
    ['waiting', 'The service sends it'],
    ['done', 'On the chain'],
  ],
  direct: [
    ['sending', 'Allowance and transaction in your wallet'],
    ['done', 'On the chain'],
  ],
  limit: [
    ['allowing', 'The token is allowed to Permit2 (once)'],
    ['signing', 'Your signature'],
    ['done', 'It waits for its price, in the list of gasless orders below'],
  ],
};

/** What is swapped, and how. */
type Wanted = { buy: Token } & ({ mode: 'gasless' | 'direct'; swap: DirectSwap } | { mode: 'limit'; swap: LimitSwap });

const LEFT =
  'The account was left meanwhile: nothing more was asked of it. What was sent before is among its transactions that wait, and in its history.';

interface Runner {
  run: Run | null;
  start(wanted: Wanted): void;
  forget(): void;
}

/**
 * Runs one swap at a time. Leaving the page or the account signs, submits and sends nothing any more, and ends the waiting for what was submitted, not
 * the order or a transaction that was sent: the history shows the result of the one, which is remembered until it is known, and the other is among those
 * that wait, of this account, until it is mined.
 */
export function useRun(taker: TakerClient | null, address: string | null): Runner {
  const { deployment } = useShown();
  const [run, setRun] = useState<Run | null>(null);
  const leaving = useRef<AbortController | null>(null);
  useEffect(() => () => leaving.current?.abort(new Error(LEFT)), [address]);

  const start = useCallback(
    (wanted: Wanted) => {
      if (taker === null || address === null) return;
      leaving.current?.abort(new Error(LEFT));
      const mine = new AbortController();
      leaving.current = mine;
      const change = (what: Partial<Run>): void => {
        if (leaving.current === mine) setRun((old) => (old === null ? null : { ...old, ...what }));
      };
      const { mode, buy } = wanted;
      const stage = ({ gasless: 'quoting', direct: 'sending', limit: 'signing' } as const)[mode];
      const nothing = { quote: null, orderId: null, txHash: null, error: null };
      setRun({ mode, taker: address, buy, stage, sinceMs: Date.now(), ...nothing });
      const token = deployment.tokens.find(({ symbol }) => symbol === wanted.swap.sell)?.address ?? '';
      void perform(taker, wanted, change, mine.signal).catch((error: unknown) => {
        keepUnsure(unsureOrders, error, { account: address, deployment: deployment.deployment_id, token }, Date.now());
        change({ stage: 'failed', error: explained(error) });
      });
    },
    [taker, address, deployment],
  );
  return { run, start, forget: () => setRun(null) };
}

/** Does what is wanted, and tells of each step. Once `signal` is aborted no further step begins, such as a signature after an allowance. */
export async function perform(
  taker: TakerClient,
  { mode, swap }: Wanted,
  change: (what: Partial<Run>) => void,
  signal: AbortSignal,
): Promise<void> {
  if (mode === 'direct') {
    const txHash = await taker.swap(swap, signal).catch((error: unknown) => {
      throw error instanceof CurvebookError && error.code === 'BELOW_MINIMUM' ? belowShown(error) : error;
    });
    return change({ stage: 'done', txHash });
  }
  if (mode === 'limit') {
    const orderId = await allowed(taker, swap, { change, signal, stage: 'signing' }, () =>
      taker.placeLimit(swap, {}, signal),
    );
    return change({ stage: 'done', orderId });
  }
  const swapped = (): Promise<OrderStatus> =>
    taker.swapGasless(swap, signal, {
      onQuote: (quote) => change({ stage: 'signing', quote, sinceMs: Date.now() }),
      onSubmitted: (orderId) => change({ stage: 'waiting', orderId, sinceMs: Date.now() }),
    });
  const { status, txHash, reason } = await allowed(taker, swap, { change, signal, stage: 'quoting' }, swapped);
  if (status === 'filled') return change({ stage: 'done', txHash });
  throw new CurvebookError(reason?.code ?? 'EXPIRED', reason?.message ?? `the order is ${status}`);
}

/** The least was the page's own, which knows no `minBuy`. */
const belowShown = (cause: CurvebookError): CurvebookError =>
  new CurvebookError('BELOW_MINIMUM', 'the price moved below the least that was shown: nothing was sent', {
    ...{ cause, remedy: 'swap again at the price of now, or allow more slippage' },
  });

/** Does what needs an allowance to Permit2; where there is none, nothing was signed, and it is done again after a transaction that allows the amount. */
async function allowed<T>(
  taker: TakerClient,
  { sell, amount }: { sell: string; amount: string },
  { change, signal, stage }: { change: (what: Partial<Run>) => void; signal: AbortSignal; stage: Run['stage'] },
  job: () => Promise<T>,
): Promise<T> {
  try {
    return await job();
  } catch (error) {
    if (!(error instanceof CurvebookError) || error.code !== 'APPROVAL_NEEDED') throw error;
  }
  signal.throwIfAborted();
  change({ stage: 'allowing' });
  await taker.allowGasless(sell, amount);
  signal.throwIfAborted();
  change({ stage });
  return job();
}
