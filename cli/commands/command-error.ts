/** A command that was refused or could not be carried out, with a code that scripts may act on. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(
    readonly code:
      | 'INTERRUPTED'
      | 'ARCHIVE_MISSING'
      /** A process that `archive import` would disturb is running. */
      | 'SERVER_RUNS',
    message: string,
  ) {
    super(message);
  }
}
