/** A command that was refused or could not be carried out, with a code that scripts may act on. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(
    readonly code:
      | 'INTERRUPTED'
      | 'ARCHIVE_MISSING'
      /** A process that `archive import` would disturb is running. */
      | 'SERVER_RUNS'
      // What was to be decided has been decided otherwise, or is no longer open.
      | 'HALTED_MEANWHILE'
      | 'REQUESTED_MEANWHILE'
      | 'ITEM_CLOSED'
      | 'ALREADY_DECIDED'
      | 'DECIDED_MEANWHILE'
      | 'BAD_ACCOUNT',
    message: string,
  ) {
    super(message);
  }
}
