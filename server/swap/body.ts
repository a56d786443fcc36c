import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { ApiError, badRequest } from '../errors.js';
import { BodyError, readJsonBody, readJsonText } from '../orders/body.js';

/** Longest body of a request: a quote's fields, or a signature, which of a contract may be long. */
const MAX_SWAP_BYTES = 64 * 1024;

/** The body of a request in the shape of `schema`. Throws 400 with every problem at once. */
export async function readBody<T extends z.ZodType>(request: IncomingMessage, schema: T): Promise<z.output<T>> {
  return parseAs(schema, await jsonOf(request));
}

/** A value in the shape of `schema`. Throws 400 with every problem at once. */
export function parseAs<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw badRequest(problems.join('; '));
}

const jsonOf = (request: IncomingMessage): Promise<unknown> => asApiError(readJsonBody(request, MAX_SWAP_BYTES));

/** The body of a request, which need not be JSON. Throws 400 and 413 as the reading of its JSON does. */
export const readText = (request: IncomingMessage): Promise<string> =>
  asApiError(readJsonText(request, MAX_SWAP_BYTES));

async function asApiError<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof BodyError) throw new ApiError(error.status === 413 ? 413 : 400, 'BAD_REQUEST', error.message);
    throw error;
  }
}
