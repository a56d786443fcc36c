/** What a role declares. One folder in `cli/roles/` per role, and one line in `cli/roles/registry.ts`. */
import type { z } from 'zod';
import type { Loop } from '../../keepers/loop.js';
import type { HintTopic } from '../../ledger/db/hints.js';
import type { Role } from '../../ledger/roles.js';
import type { Writer } from '../../ledger/types.js';
import type { PlatformFacts } from '../../ledger/views/platform.js';
import type { BaseConfig } from '../base-config.js';
import type { RoleContext } from './context.js';

/** What a role gets when it starts: its process owns its log, and follows the ledger. */
export interface RoleRun<C extends BaseConfig = BaseConfig> {
  context: RoleContext<C>;
  signal: AbortSignal;
  /** Of the log that the role owns. */
  writer: Writer;
  /** Serves orders and reads by this writer, promoting what served as a standby until now. */
  serve(writer: Writer): Promise<{ onGeneration(): void }>;
  /** Calls `wake` for each commit of these topics, of this process or another one, as long as the roles run. */
  wakeBy(topics: readonly RoleTopic[], wake: () => void): void;
  /** A role that finds what it holds in memory to be out of date calls it, and all of them start again. */
  onOutdated(): void;
}

/** `generations`: whatever the process has followed of the ledger. The others are hints, or calls where this process commits itself. */
export type RoleTopic = 'generations' | Extract<HintTopic, 'claims' | 'swaps' | 'operator'>;

/** Preparation of a role while its process waits for its logs. */
export interface Preparation<C extends BaseConfig = BaseConfig> {
  /** Resolves when nothing is read any more. */
  readonly done: Promise<void>;
  /** The process has its logs: ends the reading of listings, for another role to read them. */
  takeOver(): Promise<void>;
  /** Starts the role in place of its own `start`, from what was prepared. */
  start(run: RoleRun<C>): Promise<Loop[]>;
}

/** What the status page says of a role: when it last made something durable, null if never, and how much waits for it. */
interface RoleStatus {
  lastActMs: number | null;
  waiting?: number;
}

interface RoleDefinition<N extends Role, S extends z.ZodRawShape> {
  name: N;
  /** Whether it sends transactions, by the key in `<NAME>_PRIVATE_KEY` or of the manifest's account of its name. */
  signs: boolean;
  /** Its own settings. What others read, too, is in `cli/settings/common.ts`. */
  settings: S;
  /** Settings that are fine each by itself and not together; `isPlayed` says whether this process plays the role. */
  problems?(settings: SettingsOf<S>, isPlayed: boolean): string[];
  status(facts: PlatformFacts): RoleStatus;
  /** Begins what can be done while the process waits for its logs, until `acquired` ends. */
  prepare?(context: RoleContext<BaseConfig & Own<S>>, acquired: Promise<void>, signal: AbortSignal): Preparation;
  /** Starts it; resolves with what has to end before the database is closed. */
  start(run: RoleRun<BaseConfig & Own<S>>): Promise<Loop[]>;
}

type Own<S extends z.ZodRawShape> = z.output<z.ZodObject<S>>;
type SettingsOf<S extends z.ZodRawShape> = Own<S> & Pick<BaseConfig, 'ROLES' | 'POLL_INTERVAL_MS' | 'FEE_CEILING_GWEI'>;

/** Infers the name and the settings of a role from its definition. */
export const defineRole = <N extends Role, S extends z.ZodRawShape>(role: RoleDefinition<N, S>): typeof role => role;
