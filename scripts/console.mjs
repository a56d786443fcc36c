/** What the entry points share: where the project is, and how they report progress. */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of the repository. */
export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Prints one progress line, on stderr so that a command's own output stays clean.
 * @param {string} line
 */
export function say(line) {
  process.stderr.write(`curvebook: ${line}\n`);
}

/**
 * Runs `work` and says how far it is: once at the start, every ten seconds, and at the end.
 * @template T
 * @param {string} what e.g. "installing dependencies"
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withProgress(what, work) {
  const startedMs = Date.now();
  const elapsed = () => `${Math.round((Date.now() - startedMs) / 1000)} s`;
  say(`${what} ...`);
  const timer = setInterval(() => say(`${what} ... ${elapsed()}`), 10_000);
  try {
    const result = await work();
    say(`${what}: done in ${elapsed()}`);
    return result;
  } finally {
    clearInterval(timer);
  }
}
