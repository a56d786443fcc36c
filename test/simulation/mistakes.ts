/** Mistakes that the simulator must find: each is put into a copy of the sources, which is then run seed by seed until one fails. */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { elapsedMs } from './clock.js';
import { MISTAKES, type Mistake } from './mistake-list.js';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const SOURCES = [
  'cli',
  'core',
  'ledger',
  'liquidity',
  'keepers',
  'server',
  'deploy',
  'test/simulation',
  'test/support',
];
const LINKED = ['node_modules', 'typechain-types', 'artifacts', 'package.json', 'tsconfig.json'];
const SEEDS = '100000';

/** Prints one row per mistake. True when each was found in time, and the sources without any were not found wrong. */
export async function tryMistakes(options: { only: readonly string[] | null; minutes: number }): Promise<boolean> {
  const wanted = MISTAKES.filter(({ name }) => options.only === null || options.only.includes(name));
  let all = true;
  for (const mistake of wanted) {
    const found = await tryOne(mistake, options.minutes * 60_000);
    all &&= found !== null;
    console.log(`${mistake.name.padEnd(26)} ${found ?? `NOT FOUND in ${options.minutes} minutes`}`);
  }
  return all;
}

async function tryOne(mistake: Mistake, limitMs: number): Promise<string | null> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-mistake-'));
  try {
    for (const source of SOURCES) cpSync(join(ROOT, source), join(folder, source), { recursive: true });
    for (const linked of LINKED)
      if (existsSync(join(ROOT, linked))) symlinkSync(join(ROOT, linked), join(folder, linked));
    for (const { file, from, to } of mistake.patches) {
      const path = join(folder, file);
      const text = readFileSync(path, 'utf8');
      if (!text.includes(from)) return `cannot be put in: ${file} no longer has ${JSON.stringify(from.slice(0, 60))}`;
      writeFileSync(
        path,
        text.replace(from, () => to),
      );
    }
    return await search(folder, mistake, limitMs);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs seeds until one fails. */
function search(folder: string, mistake: Mistake, limitMs: number): Promise<string | null> {
  const startedMs = elapsedMs();
  const args = ['--import', 'tsx', 'test/simulation/main.ts', '--seeds', SEEDS, ...(mistake.args ?? [])];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve) => {
    let text = '';
    const end = (answer: string | null): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve(answer);
    };
    const timer = setTimeout(() => end(null), limitMs);
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const failed = /^seed (\d+):.*FAILED (.*)$/m.exec(text);
      if (failed === null) return;
      const seconds = ((elapsedMs() - startedMs) / 1_000).toFixed(0);
      end(`${seconds.padStart(4)} s, seed ${failed[1]}: ${failed[2]!.slice(0, 110)}`);
    });
    child.once('exit', () => end(null));
  });
}
