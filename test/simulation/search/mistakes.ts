/** Mistakes that the simulator must find: each is put into a copy of the sources, which is then run seed by seed until one fails. */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MISTAKES, type Mistake } from './mistake-list.js';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../..');
/** What no module of the backend or the simulation is in. */
const NOT_COPIED = ['artifacts', 'bench', 'cache', 'contracts', 'dist', 'docs', 'examples', 'snapshots', 'web'];
/** Too large to copy; nothing in them imports what is copied. */
const LINKED = ['node_modules', 'typechain-types'];
/** More than any search comes to. */
const SEEDS = '100000';

/** How a search ended. */
interface Found {
  seed: string;
  blocks: string;
  seconds: string;
  violation: string;
}

/** Prints one row per mistake. True when each was found in time. */
export async function tryMistakes(options: { only: readonly string[] | null; minutes: number }): Promise<boolean> {
  const unknown = options.only?.filter((name) => !MISTAKES.some((one) => one.name === name)) ?? [];
  if (unknown.length > 0) throw new RangeError(`no such mistake: ${unknown.join()}`);
  const wanted = MISTAKES.filter(({ name }) => options.only === null || options.only.includes(name));
  let all = true;
  console.log('| mistake | seed | blocks | CPU seconds | what was violated |\n|---|---|---|---|---|');
  for (const mistake of wanted) {
    const found = await tryOne(mistake, options.minutes * 60_000);
    all &&= found !== null;
    const cells = found ?? { seed: '', blocks: '', seconds: `${options.minutes * 60}`, violation: 'NOT FOUND' };
    console.log(`| ${[mistake.name, cells.seed, cells.blocks, cells.seconds, cells.violation].join(' | ')} |`);
  }
  return all;
}

/** Null when it was not found in time. Throws when it can't be put in, or the copy does not run. */
export const tryOne = (mistake: Mistake, limitMs: number): Promise<Found | null> =>
  withMistake(mistake, (folder) => search(folder, mistake, limitMs));

/** Runs work on a copy of the sources that has the mistake, which is gone afterwards. */
async function withMistake<T>(mistake: Mistake, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-mistake-'));
  try {
    copyWith(mistake, folder);
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What `npm run simulate` prints with a mistake in the sources. */
export const simulateWith = (mistake: Mistake, args: readonly string[]): Promise<string> =>
  withMistake(mistake, (folder) => {
    const child = startIn(folder, args);
    return new Promise((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
      child.once('error', reject);
      child.once('exit', () => resolve(text));
    });
  });

const startIn = (folder: string, args: readonly string[]) =>
  spawn(process.execPath, ['--max-semi-space-size=64', '--import', 'tsx', 'test/simulation/main.ts', ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** The sources of a mistake's files with it in them, by their paths. Throws RangeError unless each piece of text is there once. */
export function patched(mistake: Mistake): Map<string, string> {
  const { name, patches } = mistake;
  const texts = new Map<string, string>();
  if (patches.length === 0) throw new RangeError(`${name} changes nothing`);
  for (const { file, from, to } of patches) {
    const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
    if (text.split(from).length !== 2)
      throw new RangeError(`${name} can't be put in: ${file} must have once ${JSON.stringify(from)}`);
    texts.set(
      file,
      text.replace(from, () => to),
    );
  }
  return texts;
}

/** The sources with a mistake in them. */
function copyWith(mistake: Mistake, folder: string): void {
  const texts = patched(mistake);
  for (const entry of readdirSync(ROOT, { withFileTypes: true })) {
    const { name } = entry;
    if (name.startsWith('.') || NOT_COPIED.includes(name)) continue;
    if (LINKED.includes(name)) symlinkSync(join(ROOT, name), join(folder, name));
    else cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  for (const [file, text] of texts) writeFileSync(join(folder, file), text);
}

const VERDICT = /^seed (\d+): (\d+) blocks, trace \w+, (\d+) ms CPU, (.*)$/gm;

/** Runs seeds until one fails, or they have taken so much of a processor's time: other work of the machine does not count. */
function search(folder: string, mistake: Mistake, limitMs: number): Promise<Found | null> {
  const child = startIn(folder, ['--seeds', SEEDS, '--quiet', ...(mistake.args ?? [])]);
  return new Promise((resolve, reject) => {
    let text = '';
    let answer: Found | null = null;
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      let tookMs = 0;
      for (const [, seed = '', blocks = '', ms = '', verdict = ''] of text.matchAll(VERDICT)) {
        tookMs += parseInt(ms, 10);
        if (!verdict.startsWith('FAILED ') || answer !== null) continue;
        answer = { seed, blocks, seconds: (tookMs / 1_000).toFixed(0), violation: verdict.slice(7, 127) };
      }
      if (answer !== null || tookMs > limitMs) child.kill('SIGKILL');
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (code === null) resolve(answer);
      else reject(new Error(`the simulation of ${mistake.name} ended by itself with code ${code}`));
    });
  });
}
