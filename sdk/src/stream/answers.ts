/**
 * What the frames of the server say of what it was asked. It answers in the order in which it was asked, and of what comes at once beyond the
 * client's budget only the first.
 */
import type { components } from './schema.js';

type Frame = components['schemas']['ServerFrame'];
type Subscription = components['schemas']['Subscription'];

export type Method = 'subscribe' | 'unsubscribe' | 'ping';

/** An answer to the oldest request with this method and subscription; to the oldest of all where it names none. */
export interface Answer {
  method: Method | null;
  subscription: Subscription | null;
  /** `done`: it is as asked; `refused`: it won't be; `again`: it may be if it is asked again later. */
  outcome: 'done' | 'refused' | 'again';
}

const NAMED: Readonly<Record<string, Pick<Answer, 'method' | 'outcome'>>> = {
  'Invalid subscription': { method: 'subscribe', outcome: 'refused' },
  // What it begins with was sent to an earlier listener.
  'Already subscribed:': { method: 'subscribe', outcome: 'again' },
  'Already unsubscribed:': { method: 'unsubscribe', outcome: 'done' },
};

/** A frame's text. Throws for what is no frame. */
export function frameIn(text: string): Frame {
  const frame = JSON.parse(text) as unknown;
  if (!isObject(frame) || typeof frame.channel !== 'string') throw new Error('a frame has no channel');
  if (frame.channel === 'error' && typeof frame.data !== 'string') throw new Error('an error has no text');
  if (frame.channel === 'subscriptionResponse' && !(isObject(frame.data) && isObject(frame.data.subscription)))
    throw new Error('an answer names no subscription');
  return frame as unknown as Frame;
}

/** Null for a frame that answers nothing. */
export function answerIn(frame: Frame): Answer | null {
  if (frame.channel === 'pong') return { method: 'ping', subscription: null, outcome: 'done' };
  if (frame.channel === 'subscriptionResponse') return { ...frame.data, outcome: 'done' };
  if (frame.channel !== 'error') return null;
  if (frame.data.startsWith('rate_limited')) return { method: null, subscription: null, outcome: 'again' };
  if (frame.data.startsWith('Error parsing JSON')) return { method: null, subscription: null, outcome: 'refused' };
  const [, what = '', named = ''] = /^([A-Za-z ]+:?) (\{.*)$/s.exec(frame.data) ?? [];
  const kind = Object.hasOwn(NAMED, what) ? NAMED[what] : undefined;
  if (kind === undefined) return null;
  try {
    return { ...kind, subscription: JSON.parse(named) as Subscription };
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
