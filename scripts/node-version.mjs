/**
 * Makes every entry point run under a Node version that the dependencies support, whichever version it was started with. This file and the
 * other entry points import nothing that has to be installed first, and use only syntax that Node 18 has.
 */
import { spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname } from 'node:path';
import { projectRoot, say } from './console.mjs';

/** Lowest version that runs the project: better-sqlite3 crashes and Hardhat refuses to start on older ones. */
export const MINIMUM_NODE = [22, 13, 0];
/** What is obtained from npm when the running version is too old. */
const NODE_PACKAGE = 'node@24';
const REEXECUTED = 'CURVEBOOK_NODE_REEXECUTED';
const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * True when `version` ("22.13.0") is at least the minimum.
 * @param {string} version
 * @returns {boolean}
 */
export function isSupportedNode(version) {
  const parts = version.split('.').map((part) => parseInt(part, 10));
  for (let i = 0; i < MINIMUM_NODE.length; i++) {
    const part = parts[i] ?? 0;
    if (part !== MINIMUM_NODE[i]) return part > MINIMUM_NODE[i];
  }
  return true;
}

/**
 * Returns at once under a supported Node. Under an older one it says so, runs the same script with the same arguments under
 * Node 24 (from npm's cache when it is there), and ends this process with that run's exit code; it never returns then.
 * @returns {Promise<void>}
 */
export async function ensureNode() {
  const current = process.versions.node;
  if (isSupportedNode(current)) return;
  if (process.env[REEXECUTED] !== undefined) {
    fail(`Still on Node ${current} after re-executing; install Node >= ${MINIMUM_NODE.join('.')} yourself.`);
  }
  say(
    `Started from Node ${current}, which is too old (>= ${MINIMUM_NODE.join('.')} is needed): re-executing under Node 24.`,
  );
  const binary = obtainNode();
  process.exit(await runUnder(binary));
}

/** Path of a Node 24 binary; npm keeps it in its own cache, outside the project. */
function obtainNode() {
  // The package fetches its binary in an install script, which the project's .npmrc switches off for everything else.
  const flags = ['--ignore-scripts=false', '--prefer-offline', '--yes', `--package=${NODE_PACKAGE}`];
  const found = spawnSync('npx', [...flags, '--', 'node', '-p', 'process.execPath'], {
    cwd: projectRoot,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const path = found.stdout?.trim().split('\n').at(-1) ?? '';
  if (found.status !== 0 || path === '') {
    fail(`Could not get Node 24 by npx: ${found.error?.message ?? found.stderr.trim()}`);
  }
  return path;
}

/** Runs this very command line under `binary`; resolves to the exit code a shell would report. */
function runUnder(binary) {
  const path = dirname(binary) + delimiter + (process.env.PATH ?? '');
  const env = { ...process.env, PATH: path, npm_node_execpath: binary, [REEXECUTED]: '1' };
  const child = spawn(binary, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit', env });
  for (const signal of FORWARDED_SIGNALS) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.on('error', (error) => fail(`Could not run ${binary}: ${error.message}`));
    child.on('exit', (code, signal) => resolve(code ?? 128 + (constants.signals[signal ?? 'SIGKILL'] ?? 9)));
  });
}

/** @returns {never} */
function fail(message) {
  say(message);
  process.exit(1);
}
