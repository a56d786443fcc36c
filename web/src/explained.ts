import { CurvebookError } from '../../sdk/src/index.js';

/** One sentence for whatever went wrong: what, its code, and the remedy where one is known. */
export function explained(error: unknown): string {
  if (!(error instanceof CurvebookError)) return error instanceof Error ? error.message : String(error);
  const remedy = error.remedy === null ? '' : ` What to do: ${error.remedy}.`;
  return `${error.message} (${error.code}).${remedy}`;
}
