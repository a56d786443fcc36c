/** What was wrong with what the operator gave the program. */

/** Startup failed because of what the operator gave us; restarting won't help. */
export class ConfigError extends Error {
  readonly code: string = 'BAD_CONFIG';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`invalid configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** A command line that says what no command does. */
export class UsageError extends ConfigError {
  override readonly code = 'BAD_ARGUMENT';
  constructor(problem: string) {
    super([problem]);
    this.name = 'UsageError';
    this.message = problem;
  }
}
