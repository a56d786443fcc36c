import type { RouterContext } from '@koa/router';
import { WireError } from '../../core/wire/errors.js';
import { BodyError, NOT_JSON, readJsonText } from './body.js';
import { MAX_BODY_BYTES } from './limits.js';
import { GatewayUnavailableError, RateLimitedError } from './refusals.js';

/** Text that clients of this wire expect for a malformed request. */
const SHAPE_TEXT = 'Failed to deserialize the JSON body into the target type';
const JSON_TYPE = 'application/json; charset=utf-8';

interface AnswerOptions {
  /** Longest body that is read. */
  maxBytes?: number;
  /** Makes the JSON value of a body, or a promise of it. Throws SyntaxError. */
  parse?: (text: string) => unknown;
}

const parseNow = (text: string): unknown => JSON.parse(text);

/**
 * Reads the body of a request as JSON and answers with the JSON text that `serve` makes of it and its length, a bare string or null
 * included; refusals of the request itself are plain text. Any other error is a server error; rethrown.
 */
export async function answer(
  ctx: RouterContext,
  serve: (body: unknown, bytes: number) => Promise<string>,
  { maxBytes = MAX_BODY_BYTES, parse = parseNow }: AnswerOptions = {},
): Promise<void> {
  try {
    const text = await readJsonText(ctx.req, maxBytes);
    sendJson(ctx, await serve(await parse(text), text.length));
  } catch (error) {
    if (error instanceof RateLimitedError) {
      // Sent on the fast path, since a refused client may be flooding.
      return sendJson(ctx, 'null', 429, { 'Retry-After': String(error.retryAfterSec) });
    }
    const { status, message } = refusalOf(error);
    ctx.status = status;
    ctx.type = 'text/plain';
    ctx.body = message;
  }
}

/**
 * Sends the whole answer at once without Koa, whose setters and getters take longer than the sending. Headers that middleware has set
 * before are included; none can be set later.
 */
function sendJson(ctx: RouterContext, text: string, status = 200, headers: Record<string, string> = {}): void {
  const { res } = ctx;
  ctx.respond = false;
  res.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': Buffer.byteLength(text), ...headers });
  res.end(text);
}

/** Any other error is a server error; rethrown. */
function refusalOf(error: unknown): { status: number; message: string } {
  if (error instanceof BodyError) return { status: error.status, message: error.message };
  if (error instanceof SyntaxError) return { status: 400, message: NOT_JSON };
  if (error instanceof WireError) return { status: 422, message: `${SHAPE_TEXT}: ${error.message}` };
  if (error instanceof GatewayUnavailableError) return { status: 503, message: error.message };
  throw error;
}
