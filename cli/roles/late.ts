/** Starts of roles whose logs fall free after those of others. */
import type { Role } from '../../ledger/roles.js';

interface LateStarts<T> {
  /** Starts a role whose log this process has now. */
  begin(role: T): void;
  /** Resolves once no start is under way. Never rejects. */
  ended(): Promise<void>;
}

/**
 * The gateway starts at once, because nobody takes orders while its log is held and it does not serve, and so does the watcher, since a gateway may
 * wait for a listing that only the watcher reads; any other role beside its fellows, after a gateway whose start is under way. A failed start is
 * reported to `onFailure` and does not block the others.
 */
export function createLateStarts<T extends { name: Role }>(
  start: (role: T) => Promise<void>,
  onFailure: (error: unknown) => void,
): LateStarts<T> {
  const starts = new Set<Promise<void>>();
  let gateway: Promise<void> = Promise.resolve();
  return {
    begin(role) {
      const isGateway = role.name === 'gateway';
      const isAtOnce = isGateway || role.name === 'watcher';
      const started = (isAtOnce ? start(role) : gateway.then(() => start(role))).catch(onFailure);
      if (isGateway) gateway = started;
      starts.add(started);
      void started.then(() => starts.delete(started));
    },
    async ended() {
      while (starts.size > 0) await Promise.all(starts);
    },
  };
}
