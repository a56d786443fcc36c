import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from './limits.js';

/** Bytes beyond the limit that are read and dropped, so that the client still gets its answer; then the connection is cut off. */
const DRAIN_BYTES = 64 * 1024 * 1024;

/** Answer to a body that is no JSON. */
export const NOT_JSON = 'Failed to parse the request body as JSON';

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

/** The JSON value of a request of at most `maxBytes`. Throws BodyError. */
export async function readJsonBody(request: IncomingMessage, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  const text = await readJsonText(request, maxBytes);
  try {
    return JSON.parse(text);
  } catch {
    throw new BodyError(400, NOT_JSON);
  }
}

/** The text of a JSON request of at most `maxBytes`, which need not be JSON. Throws BodyError. */
export async function readJsonText(request: IncomingMessage, maxBytes = MAX_BODY_BYTES): Promise<string> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(?:;|$)/i.test(contentType)) {
    throw new BodyError(415, 'Expected request with `Content-Type: application/json`');
  }
  return (await readBytes(request, maxBytes)).toString('utf8');
}

/** Uses events, because async iteration takes as long as the rest of a small request. */
function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else tooMuch();
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    // Comes also after an error, so that `error` needs no listener; after the end of the body it has no effect.
    request.on('close', () => request.readableEnded || reject(endedEarly()));
    if (declaredBytes(request) > BigInt(maxBytes)) tooMuch();

    /**
     * The answer is sent at once. Further bytes are read and dropped, because a client that reads only after sending would otherwise see a
     * reset instead of the answer; far beyond the limit the connection is cut off.
     */
    function tooMuch(): void {
      chunks.length = 0;
      reject(tooLong(maxBytes));
      if (length > DRAIN_BYTES) request.destroy();
    }
  });
}

/** The declared content length, 0 without one. */
const declaredBytes = ({ headers }: IncomingMessage): bigint => {
  const length = headers['content-length'];
  return length !== undefined && /^\d{1,20}$/.test(length) ? BigInt(length) : 0n;
};

const endedEarly = (): BodyError => new BodyError(400, 'The request body ended early');
const tooLong = (maxBytes: number): BodyError =>
  new BodyError(413, `The request body is longer than ${maxBytes} bytes`);
