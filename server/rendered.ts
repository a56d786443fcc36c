import type { Context } from 'koa';
import { stringify } from '../core/json.js';
import { createHash } from 'node:crypto';

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

/** Names bytes: 22 characters of their hash. */
export function tagOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
}

/**
 * Sets the tag, and answers 304 when the client has it; true then. Tags are compared weakly (RFC 9110, 13.1.2) and must hold no comma.
 * Koa's `fresh` is not asked: it never answers 304 to `Cache-Control: no-cache`, which fetch adds to each request that names a tag, and
 * which only asks caches to have their copy validated.
 */
export function notModified(ctx: Context, etag: string): boolean {
  ctx.set('ETag', etag);
  const known = ctx.req.headers['if-none-match'];
  if (known === undefined || !names(known, etag)) return false;
  ctx.status = 304;
  return true;
}

function names(known: string, etag: string): boolean {
  const opaque = (tag: string): string => tag.trim().replace(/^W\//, '');
  return known.trim() === '*' || known.split(',').some((tag) => opaque(tag) === opaque(etag));
}

/** A value that was made for a name and serves for as long as the name is the same. */
export interface Remembered<T> {
  /**
   * The value of this name, made at most once however many ask at the same time. `make` must read what is newer than the name or as new,
   * so that a value is never older than its name says. What fails is made anew for the next who asks.
   */
  get(name: string, make: () => Promise<T>): Promise<T>;
}

/** Holds one value, that of the newest name. */
export function createRemembered<T>(): Remembered<T> {
  let last: { name: string; value: Promise<T> } | null = null;
  return {
    get(name, make) {
      if (last?.name === name) return last.value;
      const made = { name, value: make() };
      last = made;
      made.value.catch(() => {
        if (last === made) last = null;
      });
      return made.value;
    },
  };
}
