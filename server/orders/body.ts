import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from './limits.js';

/** Longest body that is read to its end, though not kept. */
const DRAIN_BYTES = 4 * MAX_BODY_BYTES;

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

/** By events and not by iterating: the latter takes as long as the rest of a small request. */
function readBytes(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      // What is too long is read on and dropped, so that the client gets its answer; far beyond that it is cut off.
      if (length > DRAIN_BYTES) request.destroy();
      else if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    request.on('end', () => {
      if (length > MAX_BODY_BYTES) reject(tooLong());
      else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length));
    });
    // Also after an error, which nobody needs to listen for; after the end it comes too late to say anything.
    request.on('close', () => request.readableEnded || reject(endedEarly()));
  });
}

const endedEarly = (): BodyError => new BodyError(400, 'The request body ended early');
const tooLong = (): BodyError => new BodyError(413, `The request body is longer than ${MAX_BODY_BYTES} bytes`);
