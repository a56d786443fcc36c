import { stringify } from '../../core/json.js';

/** A message as the bytes that are sent. */
const frameOf = (message: object): Buffer => Buffer.from(stringify(message));

/** A push, or an answer that carries a channel of its own. */
export const channelFrame = (channel: string, data: unknown): Buffer => frameOf({ channel, data });

export const PONG: Buffer = frameOf({ channel: 'pong' });

export const errorFrame = (text: string): Buffer => channelFrame('error', text);

/** Acknowledges a subscription exactly as it was sent: clients find their request by its own fields. */
export const acknowledgement = (method: 'subscribe' | 'unsubscribe', subscription: unknown): Buffer =>
  channelFrame('subscriptionResponse', { method, subscription });

export const postFrame = (id: number, response: { type: string; payload: unknown }): Buffer =>
  channelFrame('post', { id, response });
