import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from './limits.js';

/** A request body that can't be read; answered as plain text, because some clients of this wire can't read a JSON object there. */
export class BodyError extends Error {
  override readonly name = 'BodyError';

  constructor(
    readonly status: 400 | 413 | 415,
    message: string,
  ) {
    super(message);
  }
}

/** The JSON value of a request of at most 1 MiB. Throws BodyError. */
export async function readJsonBody(request: IncomingMessage): Promise<unknown> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(?:;|$)/i.test(contentType)) {
    throw new BodyError(415, 'Expected request with `Content-Type: application/json`');
  }
  const text = (await readBytes(request)).toString('utf8');
  try {
    return JSON.parse(text);
  } catch {
    throw new BodyError(400, 'Failed to parse the request body as JSON');
  }
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Reading on without keeping lets the answer reach a client that is still sending, within a second bound.
    if (length > MAX_BODY_BYTES * 4) request.destroy();
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (length > MAX_BODY_BYTES) throw new BodyError(413, `The request body is longer than ${MAX_BODY_BYTES} bytes`);
  return Buffer.concat(chunks, length);
}
