import { Counter, Histogram, type Registry } from 'prom-client';
import type { Gateway, Submitted } from '../orders/engine.js';
import type { Logger } from 'pino';
import type { OrderLogRow } from '../../core/types.js';

/** Measures signed actions of every transport. */
export interface ActionMeter {
  /** The gateway with its actions timed. Only admitted ones are timed, because a refusal needs no commit. */
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

/**
 * The gateway with one line, at the level `debug`, per row that became durable in the order log and per signed action that was refused as a
 * whole. Requests themselves are not logged, because they hold signatures.
 */
export function logActions(gateway: Gateway, logger: Logger): Gateway {
  gateway.listen((event) => {
    if (event.type === 'rows' && logger.isLevelEnabled('debug')) for (const row of event.rows) logRow(logger, row);
  });
  const submit: Gateway['submit'] = async (...request): Promise<Submitted> => {
    const submitted = await gateway.submit(...request);
    const { reply } = submitted;
    if (reply.status === 'err') logger.debug({ code: reply.response.split(':', 1)[0] }, 'action refused');
    return submitted;
  };
  return { ...gateway, submit };
}

function logRow(logger: Logger, { orderSeq, kind, maker, signer, nonce, effects }: OrderLogRow): void {
  const opened = effects.flatMap((effect) => (effect.type === 'open' ? [effect.oid] : []));
  const closed = effects.flatMap((effect) => (effect.type === 'close' ? [effect.oid] : []));
  logger.debug({ orderSeq, kind, maker, signer, nonce, opened, closed }, 'action');
}
