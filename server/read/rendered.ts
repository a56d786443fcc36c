import type { Context } from 'koa';
import { stringify } from '../../core/json.js';
import { notModified, tagOf } from '../etag.js';

/** An answer as bytes, made once and sent as often as it is asked for. */
export interface Rendered {
  body: Buffer;
  /** Strong: equal tags mean equal bytes. */
  etag: string;
}

/** JSON of a value in which bigints become integers. */
export function render(value: unknown): Rendered {
  const body = Buffer.from(stringify(value));
  return { body, etag: `"${tagOf(body)}"` };
}

/**
 * Answers 304 without a body to a client that names the tag, else 200 with the bytes. A cache may keep the answer and has to ask each
 * time: whatever is sent is true when it is sent. `bytes` is only called when it is needed.
 */
export function sendTagged(ctx: Context, etag: string, bytes: () => Buffer): void {
  ctx.set('Cache-Control', 'no-cache');
  if (notModified(ctx, etag)) return;
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = bytes();
}

/** The same for an answer that is rendered already. */
export const sendRendered = (ctx: Context, { body, etag }: Rendered): void => sendTagged(ctx, etag, () => body);
