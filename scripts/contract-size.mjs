#!/usr/bin/env node
/**
 * `npm run size`: the code of each contract that is deployed, against the limits of EIP-170 (runtime) and EIP-3860 (init code). Fails above.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensureCompiled } from './compile.mjs';
import { projectRoot, say } from './console.mjs';
import { ensureInstalled } from './install.mjs';
import { ensureNode } from './node-version.mjs';

const LIMIT_BYTES = { runtime: 24_576, init: 49_152 };

await ensureNode();
await ensureInstalled();
await ensureCompiled();
const folder = join(projectRoot, 'artifacts', 'contracts');
const rows = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
  .map((entry) => JSON.parse(readFileSync(join(entry.parentPath, entry.name), 'utf8')))
  .filter(({ bytecode, sourceName }) => bytecode.length > 2 && !sourceName.startsWith('contracts/mocks/'))
  .map(({ contractName, bytecode, deployedBytecode }) => ({
    name: contractName,
    runtime: bytesOf(deployedBytecode),
    init: bytesOf(bytecode),
  }))
  // A library whose functions are all inlined compiles to a small stub, which is never deployed.
  .filter(({ runtime }) => runtime > 100)
  .sort((a, b) => b.runtime - a.runtime);

say(
  `${'contract'.padEnd(24)}${'runtime'.padStart(9)}${'init'.padStart(9)}   limits ${LIMIT_BYTES.runtime}, ${LIMIT_BYTES.init}`,
);
for (const { name, runtime, init } of rows)
  say(`${name.padEnd(24)}${`${runtime}`.padStart(9)}${`${init}`.padStart(9)}`);
const over = rows.filter(({ runtime, init }) => runtime > LIMIT_BYTES.runtime || init > LIMIT_BYTES.init);
for (const { name } of over) say(`${name} is too large to be deployed`);
process.exitCode = rows.length > 0 && over.length === 0 ? 0 : 1;

/** Before linking and before immutables are filled in, neither of which changes the length. */
function bytesOf(hex) {
  return (hex.length - 2) / 2;
}
