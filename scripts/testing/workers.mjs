/** Processes that run test files, seen from `npm test`. */
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { projectRoot } from '../console.mjs';

const WORKER = join(projectRoot, 'scripts', 'testing', 'worker.mjs');
const REPORTER = join(projectRoot, 'scripts', 'testing', 'mocha-reporter.cjs');
/** As in worker.mjs. */
const END_OF_FILE = '\u0000end of file\u0000\n';
/** A process that has run so many files, or takes so much memory, gets no more. */
const MOST_FILES = 25;
const MOST_BYTES = 1_200_000_000;
/** Whatever tests left running has so long to end by itself when a process has run its files. */
const MAX_END_MS = 60_000;
const MAX_DRAIN_MS = 1_000;

/**
 * @typedef {object} Ran
 * @property {boolean} isWhole false when the process ended within the file
 * @property {boolean} isGood whether it is whole and no test failed
 * @property {string} output of both streams, as it came
 * @property {number} cpuMs of the process and of children that ended meanwhile; 0 when it ended itself
 * @property {string} seed of properties
 */

/**
 * @typedef {object} Work
 * @property {string[]} requires modules that a process loads first
 * @property {object} options of Mocha
 * @property {Record<string, string>} env
 * @property {boolean} echo whether output also goes to this process's stdout as it comes
 */

/**
 * Processes that are started as they are needed, and reused.
 * @param {Work & { onFault: (name: string, reason: string) => void }} work onFault: told of a process that failed after its files, by the last one
 */
export function createWorkers({ onFault, ...work }) {
  /** @type {Map<string, ReturnType<typeof startWorker>[]>} */
  const pools = new Map();
  const idleOf = (pool) => {
    if (!pools.has(pool)) pools.set(pool, []);
    return pools.get(pool);
  };

  async function end(worker) {
    const fault = await worker.end();
    if (fault !== null) onFault(worker.lastFile(), fault);
  }

  async function take(idle, seed) {
    for (let worker = idle.pop(); worker !== undefined; worker = idle.pop()) {
      if (!worker.isSpent()) return worker;
      await end(worker);
    }
    return startWorker({ ...work, seed: seed ?? String(randomInt(2 ** 31)) });
  }

  return {
    /**
     * Runs one file, in a process of its own with `alone`, results into the file `totals`.
     * @param {string} file @param {string} totals
     * @param {{ alone?: boolean, seed?: string, pool?: string }} [how] seed: for a new process; pool: files share processes only with those of the
     * same one, whatever their modules change in others @returns {Promise<Ran>}
     */
    async run(file, totals, { alone = false, seed, pool = '' } = {}) {
      const idle = idleOf(pool);
      const worker = alone
        ? startWorker({ ...work, seed: seed ?? String(randomInt(2 ** 31)) })
        : await take(idle, seed);
      const ran = await worker.run(file, totals);
      // What a failed test left behind is no other file's, and has told enough.
      if (!ran.isGood) await worker.end();
      else if (alone || worker.isSpent()) await end(worker);
      else idle.push(worker);
      return ran;
    },
    /** Ends all processes. */
    close: async () => void (await Promise.all([...pools.values()].flatMap((idle) => idle.splice(0)).map(end))),
  };
}

/** Starts a process. @param {Work & { seed: string }} work */
function startWorker({ requires, options, env, echo, seed }) {
  const child = fork(WORKER, [JSON.stringify({ requires, options, reporter: REPORTER })], {
    cwd: projectRoot,
    env: { ...process.env, ...env, SEED: seed },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const stop = (signal) => child.kill(signal);
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const closed = new Promise((resolve) => child.once('close', resolve));
  /** @type {Promise<number | null>} the exit code; null after a signal */
  const gone = new Promise((resolve) => {
    // What it printed last may come later. What it started may hold its output open.
    child.once('exit', (code) => void Promise.race([closed, delay(MAX_DRAIN_MS)]).then(() => resolve(code)));
  });
  void gone.then(() => {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  });
  const ready = new Promise((resolve) => child.once('message', resolve));
  let output = '';
  let ends = 0;
  let onEnds = () => undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    // The end may come in two pieces.
    let kept = '';
    const take = (text) => {
      output += text;
      if (echo) process.stdout.write(text);
    };
    stream.on('data', (text) => {
      kept += text;
      const parts = kept.split(END_OF_FILE);
      kept = parts.pop();
      for (const part of parts) {
        take(part);
        ends += 1;
        onEnds();
      }
      const possible = beginOf(END_OF_FILE, kept);
      take(kept.slice(0, kept.length - possible));
      kept = kept.slice(kept.length - possible);
    });
  }
  let lastFile = '';
  let files = 0;
  let rssBytes = 0;
  let isGone = false;
  void gone.then(() => (isGone = true));

  async function run(file, totals) {
    lastFile = file;
    files += 1;
    output = '';
    ends = 0;
    const started = await Promise.race([ready, gone.then(() => null)]);
    if (started === null) return { isWhole: false, isGood: false, output, cpuMs: 0, seed };
    const answer = new Promise((resolve) => child.once('message', resolve));
    const told = new Promise((resolve) => (onEnds = () => ends >= 2 && resolve(undefined)));
    child.send({ file, totals }, () => undefined);
    const done = await Promise.race([answer, gone.then(() => null)]);
    if (done === null) return { isWhole: false, isGood: false, output, cpuMs: 0, seed };
    await Promise.race([told, gone]);
    rssBytes = done.rssBytes;
    return { isWhole: true, isGood: done.failed === 0, output, cpuMs: done.cpuMs, seed };
  }

  /** Resolves when it is gone, with what was wrong with that: null if it ended by itself and without an error. */
  async function end() {
    if (child.connected) child.disconnect();
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, MAX_END_MS, 'late')));
    const first = await Promise.race([gone, late]);
    clearTimeout(timer);
    if (first === 'late') {
      child.kill('SIGKILL');
      await gone;
      return `something that tests started kept the process from ending for ${MAX_END_MS} ms`;
    }
    return first === 0 ? null : `the process ended with code ${first} after its files\n${output}`;
  }

  return {
    run,
    end,
    lastFile: () => lastFile,
    /** Whether it should get no more files. */
    isSpent: () => isGone || files >= MOST_FILES || rssBytes >= MOST_BYTES,
  };
}

/** How many characters at the end of `text` may be the beginning of `mark`. */
function beginOf(mark, text) {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (mark.startsWith(text.slice(text.length - length))) return length;
  return 0;
}
