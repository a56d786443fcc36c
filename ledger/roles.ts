/** The roles that a process may play, each with the log that it alone appends to. */
export const LOG_OF_ROLE = {
  watcher: 'ledger',
  gateway: 'order',
  poster: 'publication',
  settler: 'settlement',
  executor: 'swap',
} as const;

export type Role = keyof typeof LOG_OF_ROLE;

export const ROLE_NAMES = Object.keys(LOG_OF_ROLE) as Role[];

/** The logs of the roles, and the operator's, to which commands append. */
export type LogName = (typeof LOG_OF_ROLE)[Role] | 'operator';
