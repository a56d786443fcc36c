/** A command finds that what it was to do may no longer be done as it was asked for. */
type RefusalCode =
  'HALTED_MEANWHILE' | 'REQUESTED_MEANWHILE' | 'ITEM_CLOSED' | 'ALREADY_DECIDED' | 'DECIDED_MEANWHILE' | 'BAD_ACCOUNT';

/** Ends a command with exit code 1; `code` is what scripts see of it with `--json`, and never changes its meaning. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';

  constructor(
    readonly code: RefusalCode,
    message: string,
  ) {
    super(message);
  }
}
