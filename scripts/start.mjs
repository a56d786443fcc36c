#!/usr/bin/env node
/** `npm start`: the whole sandbox; installs, compiles and builds first what is missing or out of date. */
import { projectRoot } from './console.mjs';
import { ensureNode } from './node-version.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureCompiled } from './compile.mjs';
import { runBuilt } from './build.mjs';

await ensureNode();
process.chdir(projectRoot);
await ensureInstalled();
await ensureCompiled();
await runBuilt('cli/sandbox');
