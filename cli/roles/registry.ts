/** The roles, one line each. What they are configured by, how they start and what the status page says of them comes from here. */
import { LOG_OF_ROLE } from '../../ledger/roles.js';
import type { RoleFacts } from '../../server/read/deps.js';
import { executor } from './executor/role.js';
import { gateway } from './gateway/role.js';
import { poster } from './poster/role.js';
import { settler } from './settler/role.js';
import { watcher } from './watcher/role.js';

/** In the order in which the status page shows them; `LOG_OF_ROLE` has their logs. */
export const ROLES = [gateway, watcher, poster, settler, executor] as const;

type Shapes = (typeof ROLES)[number]['settings'];
type All<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer A) => void ? A : never;

/** The settings of all roles. */
export const roleSettings = Object.assign({}, ...ROLES.map(({ settings }) => settings)) as All<Shapes>;

/** For the status page. */
export const ROLE_FACTS: readonly RoleFacts[] = ROLES.map(({ name, status }) => ({
  role: name,
  log: LOG_OF_ROLE[name],
  status,
}));
