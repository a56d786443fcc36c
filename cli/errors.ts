/** Errors of the operator's input. */

/** The start failed because of the operator's input; a restart does not help. */
export class ConfigError extends Error {
  readonly code: string = 'BAD_CONFIG';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`invalid configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** An invalid command line. */
export class UsageError extends ConfigError {
  override readonly code = 'BAD_ARGUMENT';
  constructor(problem: string) {
    super([problem]);
    this.name = 'UsageError';
    this.message = problem;
  }
}
