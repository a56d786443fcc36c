/** Brings node_modules in line with package-lock.json. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot, withProgress } from './console.mjs';
import { runOrExit } from './process.mjs';

const lockPath = join(projectRoot, 'package-lock.json');
const stampPath = join(projectRoot, 'node_modules', '.curvebook-lock');
/** npm writes it at the end of each install. */
const npmStampPath = join(projectRoot, 'node_modules', '.package-lock.json');

/**
 * Runs `npm ci` when node_modules is missing or was installed from another lock file, else does nothing. With `onlyIfMissing` a folder
 * that exists is left alone: another process may be running from it, and replacing native modules under it would crash it.
 * @param {{ onlyIfMissing?: boolean }} [options]
 * @returns {Promise<void>}
 */
export async function ensureInstalled({ onlyIfMissing = false } = {}) {
  if (onlyIfMissing && existsSync(npmStampPath)) return;
  const wanted = createHash('sha256').update(readFileSync(lockPath)).digest('hex');
  if (existsSync(stampPath) && readFileSync(stampPath, 'utf8') === wanted) return;
  if (!isInstalledByHand()) {
    await withProgress('installing dependencies (npm ci)', () => runOrExit('npm', ['ci', '--no-audit', '--no-fund']));
  }
  writeFileSync(stampPath, wanted);
}

/** True when npm was run by hand after the last change of the lock file, and this script has never installed. */
function isInstalledByHand() {
  if (existsSync(stampPath) || !existsSync(npmStampPath)) return false;
  return statSync(npmStampPath).mtimeMs >= statSync(lockPath).mtimeMs;
}
