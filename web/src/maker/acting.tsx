import { useCallback, useEffect, useRef, useState } from 'react';
import { explained } from '../explained.js';

interface Acting {
  busy: boolean;
  /** Result of the last act; null before the first. */
  said: { text: string; isGood: boolean } | null;
  /** Runs one act at a time; what it resolves with is what is said. The signal is aborted once this part of the page is left. */
  act(job: (signal: AbortSignal) => Promise<string>): void;
}

/** Acts of one part of a page, and their results. */
export function useActing(): Acting {
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState<Acting['said']>(null);
  const leaving = useRef<AbortController | null>(null);
  useEffect(() => () => leaving.current?.abort(), []);
  const act = useCallback((job: (signal: AbortSignal) => Promise<string>) => {
    const mine = new AbortController();
    leaving.current = mine;
    setBusy(true);
    setSaid(null);
    void job(mine.signal)
      .then(
        (text) => setSaid({ text, isGood: true }),
        (error: unknown) => setSaid({ text: explained(error), isGood: false }),
      )
      .finally(() => setBusy(false));
  }, []);
  return { busy, said, act };
}

/** What became of the last act. */
export function Said({ acting: { busy, said } }: { acting: Acting }) {
  if (busy) return <p role="status">…</p>;
  if (said === null) return null;
  return (
    <p role={said.isGood ? 'status' : 'alert'} className={said.isGood ? 'good' : 'bad'}>
      {said.isGood ? '✓ ' : ''}
      {said.text}
    </p>
  );
}
