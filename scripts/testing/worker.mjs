/**
 * A process of Mocha that runs one test file after the other, as it is told: what files import is then loaded, and compiled, once for many of
 * them. Started by workers.mjs. Every file gets a Mocha of its own.
 */
import { pathToFileURL } from 'node:url';
import Mocha from 'mocha';
import { cpuMs } from './cpu.mjs';

/** Ends the output of one file, on each stream. */
const END_OF_FILE = '\u0000end of file\u0000\n';

const { requires, options, reporter } = JSON.parse(process.argv[2]);
// An exception between two files, which no Mocha catches, ends this process, and with it the file that ran last.
for (const file of requires) await import(pathToFileURL(file).href);

let countedMs = 0;

/**
 * Runs the tests of one file, whose results the reporter writes into `totals`.
 * @param {{ file: string, totals: string }} what @returns {Promise<number>} how many failed
 */
async function runFile({ file, totals }) {
  const mocha = new Mocha({ ...options, reporter, reporterOptions: { totals } });
  mocha.addFile(file);
  await mocha.loadFilesAsync();
  const failed = await new Promise((resolve) => mocha.run(resolve));
  mocha.dispose();
  return failed;
}

process.on('message', async (what) => {
  const failed = await runFile(what);
  // Of this file, and for the first one of loading Mocha as well.
  const sinceMs = cpuMs() - countedMs;
  countedMs += sinceMs;
  for (const stream of [process.stdout, process.stderr]) stream.write(END_OF_FILE);
  process.send({ failed, cpuMs: sinceMs, rssBytes: process.memoryUsage.rss() });
});
// By `exit`, so that whatever tests started ends, too.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
process.send('ready');
