/** Runs a TypeScript entry point in this process. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from './console.mjs';

/**
 * Runs `file` (relative to the project) with this process's arguments; it sees itself as the script that was started.
 * @param {string} file
 * @returns {Promise<void>}
 */
export async function runTypeScript(file) {
  const path = join(projectRoot, file);
  const { register } = await import('tsx/esm/api');
  register();
  process.argv[1] = path;
  await import(pathToFileURL(path).href);
}
