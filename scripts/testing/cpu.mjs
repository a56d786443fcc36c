/**
 * Loaded into a child by `--import`: writes the CPU time, in milliseconds, that it and what it started took to the file named by CPU_FILE
 * when it ends. CPU_PARENT is the process that asked; what the child itself starts inherits both and writes nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** Ticks of /proc per second: the same on every Linux that Node runs on. */
const TICKS_PER_SEC = 100;

/** CPU time of this process and of children that have ended; where there is no /proc, of this process alone. @returns {number} */
export function cpuMs() {
  const own = process.cpuUsage();
  const ownMs = (own.user + own.system) / 1_000;
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // From the state on; the name before it is in parentheses and may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const childTicks = parseInt(fields[13], 10) + parseInt(fields[14], 10);
    return ownMs + (childTicks / TICKS_PER_SEC) * 1_000;
  } catch {
    return ownMs;
  }
}

// A process that replaced itself by execve could not write its CPU time. Without the function, the program starts a child instead.
process.execve = undefined;

if (isMainThread && process.env.CPU_FILE !== undefined && process.env.CPU_PARENT === String(process.ppid)) {
  process.on('exit', () => writeFileSync(process.env.CPU_FILE, String(Math.round(cpuMs()))));
}

/** What a child wrote; 0 for one that was killed. @param {string} path @returns {number} */
export function readCpuMs(path) {
  try {
    return parseInt(readFileSync(path, 'utf8'), 10);
  } catch {
    return 0;
  }
}
