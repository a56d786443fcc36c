import { createContext, use, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { createReadClient } from '../../sdk/src/index.js';
import type { ReadClient } from '../../sdk/src/index.js';
import { createStream } from '../../sdk/src/stream.js';
import type { DataOf, Stream, StreamState, Subscription } from '../../sdk/src/stream.js';
import { explained } from './explained.js';
import type { Loadable } from './loadable.js';
import { createPace } from './pace.js';

/** One server, as the pages see it: what it answers, what it streams, and whether it is there. */
interface Platform {
  read: ReadClient;
  stream: Stream;
  /** State of the stream, and a function that ends the listening. */
  onStreamState(listener: () => void): () => void;
}

export function createPlatform(url: string): Platform {
  const listeners = new Set<() => void>();
  const stream = createStream(url, { onState: () => listeners.forEach((listener) => listener()) });
  return {
    read: createReadClient(url),
    stream,
    onStreamState(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const PlatformContext = createContext<Platform | null>(null);

export function usePlatform(): Platform {
  const platform = use(PlatformContext);
  if (platform === null) throw new Error('no platform around this component');
  return platform;
}

export function useStreamState(): StreamState {
  const { stream, onStreamState } = usePlatform();
  return useSyncExternalStore(onStreamState, stream.state);
}

const NOTHING = { data: null, atMs: null, error: null };

/** Asks once per key, and again after `everyMs`, if given. A null key asks for nothing. */
export function useRead<T>(
  key: string | null,
  ask: (read: ReadClient, signal: AbortSignal) => Promise<T>,
  everyMs: number | null = null,
): Loadable<T> {
  const { read } = usePlatform();
  const [held, setHeld] = useState<{ key: string | null; value: Loadable<T> }>({ key, value: NOTHING });
  useEffect(() => {
    if (key === null) return undefined;
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | null = null;
    const once = async (): Promise<void> => {
      try {
        const data = await ask(read, leaving.signal);
        if (!leaving.signal.aborted) setHeld({ key, value: { data, atMs: Date.now(), error: null } });
      } catch (failure) {
        if (leaving.signal.aborted) return;
        const error = explained(failure);
        setHeld((old) => ({ key, value: old.key === key ? { ...old.value, error } : { ...NOTHING, error } }));
      }
      if (everyMs !== null && !leaving.signal.aborted) timer = setTimeout(() => void once(), everyMs);
    };
    void once();
    return () => {
      leaving.abort();
      if (timer !== null) clearTimeout(timer);
    };
    // `ask` is a new function at each drawing; `key` says when it means something else.
  }, [read, key, everyMs]);
  return held.key === key ? held.value : NOTHING;
}

/** What streams is drawn this often a second, however often it comes. */
const DRAWN_PER_SEC = 20;

/**
 * What a subscription has made of its frames: `reduce` takes the state so far (null at the start, and after a reconnect) and a frame. Drawn with the
 * browser's frames, twenty times a second while there is something new. A null subscription listens to nothing.
 */
export function useStream<S extends Subscription, T>(
  subscription: S | null,
  reduce: (state: T | null, data: DataOf<S>) => T,
): Loadable<T> {
  const { stream } = usePlatform();
  const key = subscription === null ? null : JSON.stringify(subscription);
  const [held, setHeld] = useState<{ key: string | null; value: Loadable<T> }>({ key, value: NOTHING });
  useEffect(() => {
    if (subscription === null) return undefined;
    let state: T | null = null;
    let isFresh = true;
    let planned: number | null = null;
    const pace = createPace(DRAWN_PER_SEC);
    const draw = (nowMs: number): void => {
      if (!pace.isDue(nowMs)) {
        planned = requestAnimationFrame(draw);
        return;
      }
      planned = null;
      setHeld({ key, value: { data: state, atMs: Date.now(), error: null } });
    };
    const stop = stream.subscribe(
      subscription,
      (data) => {
        state = reduce(isFresh ? null : state, data);
        isFresh = false;
        planned ??= requestAnimationFrame(draw);
      },
      () => {
        isFresh = true;
      },
    );
    return () => {
      stop();
      if (planned !== null) cancelAnimationFrame(planned);
    };
  }, [stream, key]);
  return held.key === key ? held.value : NOTHING;
}

/** A value that has stood still for a while: what is typed is not asked for at each key. */
export function useSettled<T>(value: T, forMs = 300): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), forMs);
    return () => clearTimeout(timer);
  }, [value, forMs]);
  return settled;
}

/** The value that was given first of those that read the same as JSON, so that an answer like the one before changes nothing. */
export function useSame<T>(value: T): T {
  const text = JSON.stringify(value);
  return useMemo(() => value, [text]);
}

/** The time, for ages: a new one every second. */
export function useNowMs(): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}
