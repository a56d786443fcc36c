#!/usr/bin/env node
/** `curvebook <command>`: the operator's command line. */
import { ensureNode } from './node-version.mjs';
import { ensureInstalled } from './install.mjs';
import { runTypeScript } from './typescript.mjs';

await ensureNode();
await ensureInstalled({ onlyIfMissing: true });
await runTypeScript('cli/main.ts');
