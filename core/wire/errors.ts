/** A malformed request. The message names the field; nothing was executed and no nonce is used up. */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly code = 'bad_request';

  constructor(
    readonly field: string,
    expected: string,
  ) {
    super(`${field}: ${expected}`);
  }
}
