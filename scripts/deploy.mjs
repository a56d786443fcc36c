#!/usr/bin/env node
/** `npm run deploy -- <command>`: deployment, configuration, upgrades, ownership and verification, on contracts compiled from these sources. */
import { ensureCompiled } from './compile.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureNode } from './node-version.mjs';
import { runBuilt } from './build.mjs';

await ensureNode();
await ensureInstalled();
await ensureCompiled();
await runBuilt('deploy/main');
