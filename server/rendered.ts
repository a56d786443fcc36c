import type { Context } from 'koa';
import { stringify } from '../core/json.js';
import { createHash } from 'node:crypto';

/** Node writes a short text together with the headers in one system call; bytes take a second call, and are faster only for long bodies. */
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
 * Answers 304 without a body to a client that names the tag, else 200 with the bytes. A cache may keep the answer but must revalidate it
 * each time. `body` is only called when it is needed.
 */
export function sendTagged(ctx: Context, etag: string, body: () => Buffer | string): void {
  ctx.set('Cache-Control', 'no-cache');
  if (notModified(ctx, etag)) return;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = body();
}

/** The same for an answer that is rendered already. */
export const sendRendered = (ctx: Context, { body, etag }: Rendered): void => sendTagged(ctx, etag, () => body);

/** Answers with JSON that was written before, and that has no tag. */
export function sendText(ctx: Context, text: Buffer | string): void {
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = text;
}

/** First part of an answer, as text or bytes, whichever is written faster. */
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

/** The stem with its tail. */
export const withTail = ({ text, bytes }: Stem, tail: string): Buffer | string =>
  bytes === null ? text + tail : Buffer.concat([bytes, Buffer.from(tail)]);

/** Names bytes: 22 characters of their hash. */
export function tagOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
}

/**
 * Sets the tag, and answers 304 when the client has it; true then. Tags are compared weakly (RFC 9110, 13.1.2) and must hold no comma.
 * Koa's `fresh` is not used: it never allows 304 for `Cache-Control: no-cache`, which fetch adds to each request with a tag, and which only
 * asks caches to revalidate.
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

/** A cached value with a key; it is valid as long as the key is the same. */
export interface Remembered<T> {
  /**
   * The value for this key, made at most once for concurrent calls. `make` must read a state at least as new as the key, so that a value is
   * never older than its key. A failure is not cached, nor is a value of which `isOf` says that it is of a newer key: where a key can come
   * again, that value would come with it. Those who asked while it was made get it all the same.
   */
  get(name: string, make: () => Promise<T>, isOf?: (value: T) => boolean): Promise<T>;
}

/** Creates a cache of one value, that of the newest key. */
export function createRemembered<T>(): Remembered<T> {
  let last: { name: string; value: Promise<T> } | null = null;
  return {
    get(name, make, isOf = () => true) {
      if (last?.name === name) return last.value;
      const made = { name, value: make() };
      last = made;
      const forget = (): void => {
        if (last === made) last = null;
      };
      made.value.then((value) => {
        if (!isOf(value)) forget();
      }, forget);
      return made.value;
    },
  };
}
