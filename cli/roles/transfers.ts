/** Which processes measure what transfers of tokens move. */
import type { Loop } from '../../keepers/loop.js';
import { createTransferWatch } from '../../keepers/watcher/tokens/transfer-watch.js';
import type { BaseConfig } from '../base-config.js';
import { rpcPool, type RoleContext } from './context.js';

/** Those that tell the operator, and those that choose routes for swaps: what was measured is kept in memory, so that each measures for itself. */
export const measuresTransfers = ({ ROLES, swap }: Pick<BaseConfig, 'ROLES' | 'swap'>): boolean =>
  ROLES.includes('watcher') || (swap !== null && (ROLES.includes('gateway') || ROLES.includes('executor')));

/** Beside the roles, by endpoints of its own, so that it holds up none. Null where nobody asks for what it measures. */
export function startTransferWatch(context: RoleContext, signal: AbortSignal): Loop | null {
  const { config, markets, logger, keepers } = context;
  if (!measuresTransfers(config)) return null;
  const { custodian } = config.manifest.contracts;
  const watch = createTransferWatch({ rpc: rpcPool(context, 'transfers'), custodian, markets, logger });
  keepers.transfers = watch.facts;
  return watch.start(signal);
}
