/** The log of a process: one JSON line per event on standard error. What each level holds is in docs/operators.md. */
import { pino, type DestinationStream, type Logger, type LoggerOptions } from 'pino';

/** Most causes of an error in a line. */
const CAUSES_MAX = 5;

/**
 * A logger of one process. Lines are written at once, so that none is missing after a crash. Of errors only name, message, code, stack and
 * causes are logged, because databases and nodes attach refused values, such as signatures.
 */
export function createLogger(
  level: string,
  destination: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Logger {
  const options: LoggerOptions = { level, base: undefined, serializers: { err: (error) => tellError(error) } };
  return pino(options, destination);
}

interface ToldError {
  type: string;
  message: string;
  code?: string | number;
  stack?: string;
  cause?: ToldError;
}

function tellError(error: unknown, depth = 0): ToldError | string {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  const told = depth < CAUSES_MAX && cause instanceof Error ? tellError(cause, depth + 1) : undefined;
  return {
    type: name,
    message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(stack === undefined ? {} : { stack }),
    ...(typeof told === 'object' ? { cause: told } : {}),
  };
}
