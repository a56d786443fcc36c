#!/usr/bin/env node
/** `curvebook <command>`: the operator's command line. */
import { ensureNode } from './node-version.mjs';
import { ensureInstalled } from './install.mjs';
import { runBuilt } from './build.mjs';

await ensureNode();
await ensureInstalled({ onlyIfMissing: true });
await runBuilt('cli/main');
