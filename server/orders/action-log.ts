import type { Logger } from 'pino';
import type { OrderLogRow } from '../../core/types.js';
import type { Gateway, Submitted } from './engine.js';

/**
 * The gateway with one line, at the level `debug`, per row that became durable in the order log and per signed action that was refused
 * as a whole. Nothing of a request itself is told: it holds a signature.
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
