/** Fails when the committed typechain-types/ are not what the contracts compile to. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureCompiled } from './compile.mjs';
import { projectRoot, say } from './console.mjs';
import { run, runOrExit } from './process.mjs';

/** Lists come in the order in which the file system names the artifacts, which differs between machines; the first item is indented. */
const linesOf = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .sort()
    .join('\n');

/** @param {string} file @returns {Promise<boolean>} */
async function isStale(file) {
  const path = join(projectRoot, file);
  const committed = await run('git', ['show', `HEAD:${file}`]);
  if (committed.code !== 0 || !existsSync(path)) return true;
  return linesOf(committed.output) !== linesOf(readFileSync(path, 'utf8'));
}

await ensureCompiled({ force: true });
const status = await runOrExit('git', ['status', '--porcelain', '--untracked-files=all', '--', 'typechain-types']);
const stale = [];
for (const line of status.split('\n').filter((one) => one !== '')) {
  const file = line.slice(3);
  if (await isStale(file)) stale.push(file);
}
if (stale.length === 0) {
  say('typechain-types/ is up to date');
} else {
  say(`typechain-types/ is stale; run \`npm run compile\` and commit:\n${stale.join('\n')}`);
  process.exitCode = 1;
}
