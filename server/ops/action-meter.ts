import { Counter, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Gateway, Submitted } from '../orders/engine.js';

/** What is measured of signed actions, over whichever transport they came. */
export interface ActionMeter {
  /** The gateway with its actions timed. Only admitted ones are timed: a refusal says nothing of how long a commit takes. */
  timed(gateway: Gateway): Gateway;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Counts the rows of the order log, by kind, and times acknowledgements. */
export function createActionMeter(registry: Registry): ActionMeter {
  const rows = new Counter({
    name: 'curvebook_order_rows_total',
    help: 'rows that became durable in the order log, by kind of action',
    labelNames: ['kind'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'curvebook_ack_seconds',
    help: 'from the arrival of a signed action to the answer after its commit',
    buckets: SECONDS,
    registers: [registry],
  });
  return {
    timed(gateway) {
      gateway.listen((event) => {
        if (event.type === 'rows') for (const { kind } of event.rows) rows.inc({ kind });
      });
      const submit: Gateway['submit'] = async (...request): Promise<Submitted> => {
        const end = seconds.startTimer();
        const submitted = await gateway.submit(...request);
        if (submitted.maker !== null) end();
        return submitted;
      };
      return { ...gateway, submit };
    },
  };
}
