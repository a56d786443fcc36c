/** Answers that are not what the API's document says they are: a check of them fails, whatever its arithmetic throws. */
import { CurvebookError } from '../errors.js';

/** Longest part of an error that is told: it may repeat the answer. */
const MAX_WHY = 200;

/** The error of a check of an answer. CurvebookErrors stay as they are; any other one comes of what the answer is. */
function asTold(code: 'BAD_CURVE' | 'BAD_PROOF', error: unknown): CurvebookError {
  if (error instanceof CurvebookError) return error;
  const why = (error instanceof Error ? error.message : String(error)).slice(0, MAX_WHY);
  return new CurvebookError(code, `the answer can not be read: ${why}`, { cause: error });
}

/** What `job` makes of an answer. Throws CurvebookError `code` for one that can't be read. */
export function readAs<T>(code: 'BAD_CURVE' | 'BAD_PROOF', job: () => T): T {
  try {
    return job();
  } catch (error) {
    throw asTold(code, error);
  }
}

/** Adds the error of a check to what it has found so far. Throws CurvebookErrors that are not about the answer. */
export function addTold(problems: string[], error: unknown): string[] {
  const told = asTold('BAD_CURVE', error);
  if (told.code !== 'BAD_CURVE') throw told;
  if (!problems.includes(told.message)) problems.push(told.message);
  return problems;
}

/** The problems that `check` finds; that the answer can't be read is one. */
export function problemsIn(check: (problems: string[]) => void): string[] {
  const problems: string[] = [];
  try {
    check(problems);
    return problems;
  } catch (error) {
    return addTold(problems, error);
  }
}
