/** Output that is repeated every few seconds: redrawn in place on a terminal, appended elsewhere. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { paintFor } from './style.js';

/** One look: lines for people, and the value that says the same. */
export interface Look {
  value: unknown;
  text: readonly string[];
}

interface WatchOptions {
  output: Writable & { isTTY?: boolean; rows?: number };
  env: Readonly<Record<string, string | undefined>>;
  intervalMs: number;
  /** Ends the watch. */
  signal: AbortSignal;
  nowMs(): number;
  /** A failure is shown, and the next look follows, so that the recovery is seen. */
  look(): Promise<Look>;
  /** How a value is printed where `json` asks for one per line. */
  json: ((value: unknown) => string) | null;
  /** Lines that are bad news. */
  isAlarming(line: string): boolean;
}

const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

/** Shows one look after the other until the signal, or until the output is closed. */
export async function watch(options: WatchOptions): Promise<void> {
  const { output, intervalMs, json, look, nowMs } = options;
  const closed = new AbortController();
  const close = (): void => closed.abort();
  output.once('error', close).once('close', close);
  const signal = AbortSignal.any([options.signal, closed.signal]);
  try {
    while (!signal.aborted) {
      const taken = await look().catch((error: unknown): Look => {
        const message = error instanceof Error ? error.message : String(error);
        return { value: { ok: false, message }, text: [`no look: ${message}`] };
      });
      if (signal.aborted) break;
      const atMs = nowMs();
      const text = json === null ? drawn(options, taken.text, atMs) : `${json(taken.value)}\n`;
      // A reader that is slower than the looks gets fewer of them.
      if (!output.write(text)) await once(output, 'drain', { signal });
      await delay(intervalMs, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    output.off('error', close).off('close', close);
  }
}

function drawn({ output, env, intervalMs, isAlarming }: WatchOptions, text: readonly string[], atMs: number): string {
  const paint = paintFor(output, env);
  const at = new Date(atMs).toISOString();
  const title = paint('dim', `${at}, every ${intervalMs / 1_000} s; Ctrl-C ends`);
  const lines = [title, ...text.map((line) => (isAlarming(line) ? paint('red', line) : line))];
  if (output.isTTY !== true) return `${lines.join('\n')}\n\n`;
  // Cut to the terminal's height, since more lines would scroll at each look.
  const room = Math.max((output.rows ?? Number.POSITIVE_INFINITY) - 1, 2);
  const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
  return `${HOME}${shown.map((line) => `${line}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`;
}
