#!/usr/bin/env node
/**
 * `node scripts/probe.mjs /live /ready`: asks the process of this container, on METRICS_PORT. Ends with 1 at the first path that is not
 * answered with 200, and prints the answer, which says why. With `--standby` first, waiting for the logs of another process is as good.
 */
const port = process.env.METRICS_PORT ?? '';
const [first, ...others] = process.argv.slice(2);
const mayWait = first === '--standby';
for (const path of mayWait ? others : process.argv.slice(2)) {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(4_000) });
    if (response.ok) continue;
    const answer = await response.text();
    if (mayWait && /"reason":"standby"/.test(answer)) continue;
    process.stdout.write(`${path} ${response.status} ${answer}\n`);
  } catch (error) {
    process.stdout.write(`${path} ${String(error.cause ?? error)}\n`);
  }
  process.exitCode = 1;
  break;
}
