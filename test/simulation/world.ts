/** What all parts of one simulation share. */
import { createHash } from 'node:crypto';
import type { SimulatedChain } from './chain.js';
import type { Decisions } from './decisions.js';
import type { Actor, Scheduler } from './scheduler.js';

export interface Simulation {
  readonly decisions: Decisions;
  readonly scheduler: Scheduler;
  readonly chain: SimulatedChain;
  readonly faults: FaultRates;
  readonly folder: string;
  readonly record: Record_;
  /** Once true, faults that heal are over. */
  isCalm: boolean;
}

/** What was seen: how often each situation came about, and the trace of all of it. */
interface Record_ {
  readonly counts: Map<string, number>;
  count(what: string): void;
  /** Keeps the highest value that was seen of something. */
  most(what: string, value: number): void;
  /** Adds a line to the trace, by which two runs are compared. */
  trace(line: () => string): void;
  digest(): string;
  /** The first thing that must not be. */
  readonly violations: string[];
  violate(what: string): void;
}

/** How likely each fault is, where it may happen. Zero takes it out of the simulation. */
export interface FaultRates {
  /** Per request of a process. */
  rpcHang: number;
  rpcRefuse: number;
  rpcSlow: number;
  /** Per look at the weather, every few seconds: an endpoint does not answer, lags, stays on a lost branch, lies. */
  endpointDown: number;
  endpointLag: number;
  endpointStale: number;
  endpointLie: number;
  /** Per statement of a process. */
  dbSlow: number;
  dbFailStatement: number;
  dbFailBegin: number;
  dbFailBeforeCommit: number;
  dbFailAfterCommit: number;
  crashAtStatement: number;
  crashBeforeCommit: number;
  crashAfterCommit: number;
  crashAtRequest: number;
  /** Per hint of a commit and process that listens. */
  hintLost: number;
  hintLate: number;
  /** Per look at the weather. */
  freeze: number;
  /** A process reaches no endpoint for a while. */
  offline: number;
  clockStep: number;
  promote: number;
  /** Per run: there is an archive, and a replica that stops following at some commit and is promoted some seconds later. */
  replicaLag: number;
  tokenSilent: number;
  /** Per block. */
  stall: number;
  reorg: number;
  /** Lies that endpoints may tell. */
  lies: readonly string[];
}

const HASHED_AT_ONCE = 2_000;

/** A record that keeps the lines themselves only when asked to. */
export function createRecord(lines: string[] | null): Record_ {
  const hash = createHash('sha256');
  const counts = new Map<string, number>();
  const violations: string[] = [];
  let unhashed: string[] = [];
  function hashAll(): void {
    hash.update(unhashed.join(''));
    unhashed = [];
  }
  return {
    counts,
    violations,
    count: (what) => void counts.set(what, (counts.get(what) ?? 0) + 1),
    most: (what, value) => void counts.set(`most ${what}`, Math.max(value, counts.get(`most ${what}`) ?? 0)),
    trace(line) {
      const text = line();
      unhashed.push(text, '\n');
      if (unhashed.length >= HASHED_AT_ONCE) hashAll();
      lines?.push(text);
    },
    digest() {
      hashAll();
      return hash.copy().digest('hex').slice(0, 16);
    },
    violate(what) {
      violations.push(what);
    },
  };
}

/** Whoever operates the backend, whom no fault of a process befalls. */
export const OPERATOR = 'operator';

/** Whether a fault happens now; each is counted. */
export function strikes(
  { decisions, faults, record, isCalm }: Simulation,
  name: Exclude<keyof FaultRates, 'lies'>,
  where = '',
): boolean {
  if (faults[name] === 0 || where === OPERATOR) return false;
  const happens = decisions.happens(where === '' ? name : placed(name, where), isCalm ? 0 : faults[name]);
  if (happens) record.count(`fault ${name}`);
  return happens;
}

const names = new Map<string, Map<string, string>>();

/** The name of what may happen at a place: asked several times for each statement, and joined once. */
function placed(name: string, where: string): string {
  let of = names.get(where);
  if (of === undefined) names.set(where, (of = new Map()));
  let joined = of.get(name);
  if (joined === undefined) of.set(name, (joined = `${name}:${where}`));
  return joined;
}

/** Name of an incarnation of a process, for decisions: not of the incarnation, so that a crash shifts nothing. */
export const nameOf = (actor: Actor | undefined): string => actor?.name ?? 'nobody';
