import { useNowMs } from './platform.js';
import type { Loadable } from './loadable.js';
import type { StreamState } from '../../sdk/src/stream.js';
import type { Status } from './market-context.js';

/** Without news for this long, what is shown is called stale: the server sends its state at least every five seconds. */
const STALE_MS = 12_000;

/** live: served and followed; stale: what is shown may be old; halted: new orders and posts have stopped; offline: no connection. */
type PlatformState = 'loading' | 'live' | 'stale' | 'halted' | 'offline';

function platformState(status: Loadable<Status>, stream: StreamState, nowMs: number): PlatformState {
  if (stream !== 'open' && status.data !== null) return 'offline';
  if (status.data === null || status.atMs === null) return 'loading';
  if (nowMs - status.atMs > STALE_MS) return 'stale';
  if (status.data.halt !== null) return 'halted';
  return status.data.ready ? 'live' : 'stale';
}

/** Why nothing new is traded now; null when it is. Cancels and withdrawals go on in each state. */
export function tradingOff(status: Loadable<Status>, stream: StreamState, nowMs: number): string | null {
  switch (platformState(status, stream, nowMs)) {
    case 'live':
      return null;
    case 'loading':
      return 'The state of the platform is not known yet.';
    case 'stale':
      return 'What is shown may be old: nothing new is traded until it is known to be true again.';
    case 'halted':
      return 'Trading is halted.';
    case 'offline':
      return 'The server does not answer.';
  }
}

const WORDS: Record<PlatformState, string> = {
  loading: '… connecting',
  live: '● live',
  stale: '◐ stale',
  halted: '■ halted',
  offline: '○ offline',
};

export function StatePill({ status, stream }: { status: Loadable<Status>; stream: StreamState }) {
  const state = platformState(status, stream, useNowMs());
  return (
    <span className={`pill ${state}`} role="status">
      {WORDS[state]}
    </span>
  );
}

/** What stands in the way of trading, in a sentence; nothing when nothing does. Reading, cancelling and withdrawing go on in each state. */
export function StateBanner({ status, failed }: { status: Loadable<Status> | null; failed: string | null }) {
  if (failed !== null) {
    return (
      <p className="banner offline" role="alert">
        <strong>Offline.</strong> The server does not answer ({failed}). What is shown is what was known; it is asked
        again by itself.
      </p>
    );
  }
  const { halt, ready, reason } = status?.data ?? { halt: null, ready: true, reason: null };
  if (halt !== null) {
    return (
      <p className="banner halted" role="alert">
        <strong>Halted{halt.by_operator ? ' by the operator' : ''}.</strong> {halt.message} <code>{halt.code}</code> New
        orders and curves have stopped; cancels and withdrawals work.
      </p>
    );
  }
  if (!ready) {
    return (
      <p className="banner stale" role="alert">
        <strong>Stale.</strong> {reason ?? 'The ledger is behind the chain.'} New orders are refused until it has caught
        up; cancels work.
      </p>
    );
  }
  return null;
}

const DAY_SEC = 86_400;

/** Seconds up to two minutes, then minutes, hours and days, cut off. */
function spoken(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 2 * DAY_SEC ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / DAY_SEC)} d`;
}

/** A time that grows, such as `4 s`. */
export function Age({ sinceMs }: { sinceMs: number | null }) {
  const nowMs = useNowMs();
  if (sinceMs === null) return <>–</>;
  const seconds = Math.max(0, Math.round((nowMs - sinceMs) / 1_000));
  return <>{spoken(seconds)}</>;
}

/** Whether what is shown is what was known before it could no longer be read. */
export const isOld = ({ data, error }: Loadable<unknown>): boolean => data !== null && error !== null;

/** Says so, how old it is, and why; nothing while it can be read, nor before anything was. */
export function Outdated({ what, of }: { what: string; of: Loadable<unknown> }) {
  if (!isOld(of)) return null;
  return (
    <p role="alert" className="bad">
      {what}: what is shown is <Age sinceMs={of.atMs} /> old, and could not be read since. {of.error}
    </p>
  );
}

/** Time left until a second of the chain's clock, such as `9 s`, or `29 d`. */
export function Countdown({ untilSec, word = 'over' }: { untilSec: number; word?: string }) {
  const left = untilSec - Math.floor(useNowMs() / 1_000);
  return <>{left > 0 ? spoken(left) : word}</>;
}
