/** A request that is not of the wire's shape. The message names the field; nothing of it was judged and no nonce is used up. */
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
