/**
 * Checks what a server says of its newest fills, without trusting it: `node --import tsx examples/check-fills.ts <url>`.
 * Sums are always checked; who was paid is derived anew from the book behind a curve, once that is shown.
 */
import { createReadClient, CurvebookError } from '../sdk/src/index.js';
import { reconcile, rederive } from '../sdk/src/verify.js';

const [url = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const read = createReadClient(url);
const deployment = await read.deployment();

for (const { pair } of deployment.markets) {
  for (const fill of await read.fills(pair, 10)) {
    const { fill_seq } = fill;
    const sums = reconcile(deployment, fill, await read.decomposition(pair, fill_seq));
    const derived = await rederive(read, pair, fill_seq).catch((error: unknown) => {
      if (error instanceof CurvebookError && ['NO_BOOK', 'TOO_OLD'].includes(error.code)) return null;
      throw error;
    });
    const problems = [...sums, ...(derived ?? [])];
    const how = derived === null ? 'adds up' : 'adds up, and the book gives the same orders';
    console.log(`${pair} #${fill_seq}: ${problems.length === 0 ? how : problems.join('; ')}`);
    if (problems.length > 0) process.exitCode = 1;
  }
}
