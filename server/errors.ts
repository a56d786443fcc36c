/** A refusal that the caller may read: its code and message become the error envelope. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** The underlying error, for the log only. */
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = 'ApiError';
  }
}

/** 400: the request itself is malformed, repeating it can't help. */
export const badRequest = (message: string): ApiError => new ApiError(400, 'BAD_REQUEST', message);

/** 404: nothing by that name is served here. */
export const notFound = (message: string): ApiError => new ApiError(404, 'NOT_FOUND', message);

/** 503: the requested thing does not exist yet; a later request may succeed. */
export const notReady = (message: string): ApiError => new ApiError(503, 'NOT_READY', message);
