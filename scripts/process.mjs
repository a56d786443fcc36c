/** Running a command to its end. */
import { spawn } from 'node:child_process';
import { projectRoot } from './console.mjs';

/**
 * @typedef {object} Finished
 * @property {number} code exit code, 1 when a signal ended the process
 * @property {string} output stdout and stderr, in the order they came
 */

/**
 * Runs a command in the project's root. With `echo` its output also goes to this process's stdout as it comes; otherwise the
 * caller decides from `output` what to show.
 * @param {string} command
 * @param {string[]} args
 * @param {{ env?: Record<string, string | undefined>, echo?: boolean }} [options]
 * @returns {Promise<Finished>}
 */
export function run(command, args, { env = {}, echo = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: projectRoot,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const chunks = [];
    const take = (chunk) => {
      chunks.push(chunk);
      if (echo) process.stdout.write(chunk);
    };
    const stop = (signal) => child.kill(signal);
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', reject);
    child.on('close', (code) => {
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
      resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString('utf8') });
    });
  });
}

/**
 * Runs a command quietly; on failure prints what it said and ends this process with its code.
 * @param {string} command
 * @param {string[]} args
 * @param {{ env?: Record<string, string | undefined> }} [options]
 * @returns {Promise<string>} its output
 */
export async function runOrExit(command, args, options = {}) {
  const { code, output } = await run(command, args, options);
  if (code !== 0) {
    process.stderr.write(output);
    process.stderr.write(`curvebook: \`${command} ${args.join(' ')}\` failed with code ${code}\n`);
    process.exit(code);
  }
  return output;
}
