/** Takes the logs of a process's roles. */
import type { Logger } from 'pino';
import { acquireWriter } from '../../ledger/db/writers.js';
import type { WriterLostError } from '../../ledger/errors.js';
import { LOG_OF_ROLE, type Role } from '../../ledger/roles.js';
import type { Db, Writer } from '../../ledger/types.js';

/** How long a process that has some of its logs waits for the others before its roles begin without them. */
export const GRACE_MS = 750;
/**
 * How long a log must have been free before a process takes it that lacks the first of its own: of two standbys for the same roles, the one that gets
 * that first gets all of them.
 */
export const POLITE_MS = 500;

interface RoleLogs {
  /** Roles whose logs this process has. */
  readonly held: ReadonlyMap<Role, Writer>;
  /** Resolves once a role's log is this process's. Rejects when it was told to stop, or when the database fails. */
  of(role: Role): Promise<Writer>;
  /** Resolves once all logs are this process's, or some are and no other came for a while: the others are another process's. */
  readonly begun: Promise<void>;
  /** Resolves once no log is being taken any more: after the signal, none comes into `held` from then on. Never rejects. */
  readonly settled: Promise<void>;
}

interface Options {
  signal: AbortSignal;
  onLost(error: WriterLostError): void;
  logger: Logger;
}

/** Waits for the logs of all roles at once, and takes each as it falls free. */
export function acquireLogs(db: Db, wanted: readonly Role[], { signal, onLost, logger }: Options): RoleLogs {
  // The same order in every process, however its roles were written down.
  const roles = [...wanted].sort();
  const held = new Map<Role, Writer>();
  const begun = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;

  const freeForMs = (role: Role): number => (role === roles[0] || held.has(roles[0]!) ? 0 : POLITE_MS);

  const lead = Promise.withResolvers<void>();

  async function take(role: Role): Promise<Writer> {
    const onSilent = (silentMs: number): void =>
      logger.warn({ role, silentMs }, 'ended the session of a silent process, which held a log');
    const options = { signal, onLost, onSilent, freeForMs: () => freeForMs(role), hurry: lead.promise };
    const writer = await acquireWriter(db, LOG_OF_ROLE[role], options);
    held.set(role, writer);
    if (role === roles[0]) lead.resolve();
    clearTimeout(timer);
    if (held.size === roles.length) begun.resolve();
    else timer = setTimeout(beginWithout, GRACE_MS);
    return writer;
  }

  function beginWithout(): void {
    const waiting = roles.filter((role) => !held.has(role));
    logger.warn(
      { roles: [...held.keys()], waiting },
      'another process holds the logs of some roles; the others begin without them',
    );
    begun.resolve();
  }

  const taken = new Map(roles.map((role) => [role, take(role)]));
  for (const one of taken.values()) one.catch(begun.reject);
  void begun.promise.catch(() => clearTimeout(timer));
  const settled = Promise.allSettled(taken.values()).then(() => undefined);
  return { held, of: (role) => taken.get(role)!, begun: begun.promise, settled };
}
