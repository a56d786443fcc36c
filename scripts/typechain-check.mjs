/** Fails when the committed typechain-types/ are not what the contracts compile to. */
import { ensureCompiled } from './compile.mjs';
import { say } from './console.mjs';
import { runOrExit } from './process.mjs';

await ensureCompiled({ force: true });
const stale = await runOrExit('git', ['status', '--porcelain', '--untracked-files=all', '--', 'typechain-types']);
if (stale === '') {
  say('typechain-types/ is up to date');
} else {
  say(`typechain-types/ is stale; run \`npm run compile\` and commit:\n${stale}`);
  process.exitCode = 1;
}
