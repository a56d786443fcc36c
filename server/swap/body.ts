import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { ApiError, badRequest } from '../errors.js';
import { BodyError, readJsonBody } from '../orders/body.js';

/** The body of a request in the shape of `schema`. Throws 400 with every problem at once. */
export async function readBody<T extends z.ZodType>(request: IncomingMessage, schema: T): Promise<z.output<T>> {
  const parsed = schema.safeParse(await jsonOf(request));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw badRequest(problems.join('; '));
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  try {
    return await readJsonBody(request);
  } catch (error) {
    if (error instanceof BodyError) throw new ApiError(error.status === 413 ? 413 : 400, 'BAD_REQUEST', error.message);
    throw error;
  }
}
