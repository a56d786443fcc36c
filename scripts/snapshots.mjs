/** `npm run snapshots`: describes storage and interface of the contracts in snapshots/contracts/. */
import { ensureCompiled } from './compile.mjs';
import { projectRoot } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureNode } from './node-version.mjs';
import { runTypeScript } from './typescript.mjs';

await ensureNode();
process.chdir(projectRoot);
await ensureInstalled();
await ensureCompiled();
await runTypeScript('deploy/checks/write-snapshots.ts');
