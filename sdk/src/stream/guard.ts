/** Calls of listeners that belong to somebody else: nothing that they do wrong ends the caller. */
interface Guard {
  /** What the listener throws is told, and so is what its promise fails with, unless that comes after the end. */
  call(listener: () => unknown): void;
  /** What the listener of errors itself throws has nowhere to go. */
  tell(error: unknown): void;
}

export function createGuard(onError: (error: unknown) => unknown, isOver: () => boolean): Guard {
  function tell(error: unknown): void {
    try {
      caught(onError(error), () => undefined);
    } catch {
      // Thrown further, it would end what the listener was called by.
    }
  }
  return {
    call(listener) {
      try {
        caught(listener(), (error) => {
          if (!isOver()) tell(error);
        });
      } catch (error) {
        tell(error);
      }
    },
    tell,
  };
}

/** An asynchronous listener returns a promise: its failure would be nobody's, which ends a program in Node. */
function caught(result: unknown, onFailure: (error: unknown) => void): void {
  if (typeof result !== 'object' || result === null || !('then' in result)) return;
  Promise.resolve(result).catch(onFailure);
}
