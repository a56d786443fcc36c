/** An error that stops a deployment command. No transaction is sent after it. */
export class DeployError extends Error {
  override readonly name = 'DeployError';

  constructor(
    readonly code:
      | 'BAD_CONFIG'
      | 'WRONG_CHAIN'
      | 'NOT_DEPLOYED'
      | 'NOT_OWNER'
      | 'INTERRUPTED'
      | 'CODE_MISMATCH'
      | 'LAYOUT_UNKNOWN'
      | 'UNSAFE_UPGRADE'
      | 'NOT_BUILT'
      | 'NO_KEY'
      | 'UNVERIFIED'
      | 'CALL_REVERTS'
      | 'BAD_ARGUMENT'
      | 'UNEVEN_TOKEN'
      | 'UNMEASURED_TOKEN',
    message: string,
  ) {
    super(message);
  }
}
