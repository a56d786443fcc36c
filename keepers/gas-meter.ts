/** Stores the costs of a keeper's transactions in the background. Receipts that can't be read now are read later. */
import { createCosts, type Costs, type CostsDeps } from './chain/costs.js';
import { startLoop, type Loop } from './loop.js';

const INTERVAL_MS = 10_000;
const MAX_BACKOFF_MS = 300_000;

/** Reads receipts of mined transactions until the signal. */
export function startGasMeter(deps: CostsDeps, signal: AbortSignal): Loop {
  let costs: Costs | null = null;
  const step = async (): Promise<void> => {
    costs ??= await createCosts(deps);
    // A page at a time: after a long pause there may be several.
    while (!signal.aborted && (await costs.collect()).length > 0);
    await costs.repair();
    await costs.findUnknown();
  };
  const name = `gas meter of the ${deps.role}`;
  return startLoop(step, { name, intervalMs: INTERVAL_MS, maxBackoffMs: MAX_BACKOFF_MS, signal, logger: deps.logger });
}

/** Combines a keeper's loop and its meter's. */
export function withMeter(keeper: Loop, meter: Loop): Loop {
  return { wake: () => keeper.wake(), done: Promise.all([keeper.done, meter.done]).then(() => undefined) };
}
