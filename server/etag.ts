import { createHash } from 'node:crypto';
import type { Context } from 'koa';

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
