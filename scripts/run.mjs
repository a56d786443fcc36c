#!/usr/bin/env node
/** `node scripts/run.mjs <command> …`: runs a command with the dependencies installed and the right Node first in PATH. */
import { spawn } from 'node:child_process';
import { dirname, delimiter } from 'node:path';
import { projectRoot } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureNode } from './node-version.mjs';

await ensureNode();
await ensureInstalled();
const [command, ...args] = process.argv.slice(2);
if (command === undefined) throw new Error('usage: node scripts/run.mjs <command> [arguments]');
const path = dirname(process.execPath) + delimiter + (process.env.PATH ?? '');
const child = spawn(command, args, { cwd: projectRoot, stdio: 'inherit', env: { ...process.env, PATH: path } });
child.on('error', (error) => {
  process.stderr.write(`curvebook: ${error.message}\n`);
  process.exitCode = 127;
});
child.on('exit', (code) => (process.exitCode = code ?? 1));
