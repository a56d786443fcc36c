/** A curve that can't be packed, read or posted. `code` is stable. */
export class CurveError extends Error {
  override readonly name: string = 'CurveError';

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}
