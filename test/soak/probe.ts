/** Loaded into the server of a soak: upon SIGUSR2 a full collection, and then what is left, as a line of standard output. */
import { MEMORY_LINE, type MemorySample } from './memory.js';

let answers = 0;

process.on('SIGUSR2', () => {
  const startedMs = performance.now();
  globalThis.gc!();
  const { heapUsed, external, rss } = process.memoryUsage();
  const pauseMs = Math.round(performance.now() - startedMs);
  const sample: MemorySample = { liveBytes: heapUsed + external, residentBytes: rss, pauseMs };
  process.stdout.write(`${MEMORY_LINE}${answers} ${JSON.stringify(sample)}\n`);
  answers += 1;
});
