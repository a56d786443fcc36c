import type { Context } from 'koa';
import { stringify } from '../../core/json.js';
import { notModified, tagOf } from '../etag.js';

/** Node writes a short text together with the head, in one system call; bytes take a second one, and are cheaper only when they are many. */
const TEXT_MAX_BYTES = 16_384;

/** An answer as bytes, made once and sent as often as it is asked for. */
export interface Rendered {
  body: Buffer | string;
  /** Strong: equal tags mean equal bytes. */
  etag: string;
}

/** JSON of a value in which bigints become integers. */
export function render(value: unknown): Rendered {
  const text = stringify(value);
  const bytes = Buffer.from(text);
  return { body: bytes.length > TEXT_MAX_BYTES ? bytes : text, etag: `"${tagOf(bytes)}"` };
}

/**
 * Answers 304 without a body to a client that names the tag, else 200 with the bytes. A cache may keep the answer and has to ask each
 * time: whatever is sent is true when it is sent. `body` is only called when it is needed.
 */
export function sendTagged(ctx: Context, etag: string, body: () => Buffer | string): void {
  ctx.set('Cache-Control', 'no-cache');
  if (notModified(ctx, etag)) return;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = body();
}

/** The same for an answer that is rendered already. */
export const sendRendered = (ctx: Context, { body, etag }: Rendered): void => sendTagged(ctx, etag, () => body);

/** Text with something behind it, as text or bytes, whichever is written faster. */
export interface Stem {
  text: string;
  /** Null for a short text. */
  bytes: Buffer | null;
  tag: string;
}

/** A stem, written once. */
export function stemOf(text: string): Stem {
  const bytes = Buffer.from(text);
  return { text, bytes: bytes.length > TEXT_MAX_BYTES ? bytes : null, tag: tagOf(bytes) };
}

/** The stem and what follows it this time. */
export const withTail = ({ text, bytes }: Stem, tail: string): Buffer | string =>
  bytes === null ? text + tail : Buffer.concat([bytes, Buffer.from(tail)]);
